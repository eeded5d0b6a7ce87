//! A container, as its runtime names it.

use serde::{Deserialize, Serialize};

/// A container, with what is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Container {
    /// Its full id; `None`: the container that was named isn't there.
    pub id: Option<String>,
    /// Its name; of a container of Kubernetes, the one that it has in its pod.
    pub name: Option<String>,
    /// What keeps it: "Docker", "Podman", "containerd", "CRI-O"; `None`: only its group is known.
    pub runtime: Option<String>,
    /// Name of its pod; `None`: it has none, or the name isn't known.
    pub pod: Option<String>,
    /// Id of its pod: the uid that Kubernetes gives, or Podman's own id.
    pub pod_id: Option<String>,
    /// Namespace of Kubernetes.
    pub namespace: Option<String>,
}

impl Container {
    /// Adds what another source knows of the same container.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            id: self.id.or(other.id),
            name: self.name.or(other.name),
            runtime: self.runtime.or(other.runtime),
            pod: self.pod.or(other.pod),
            pod_id: self.pod_id.or(other.pod_id),
            namespace: self.namespace.or(other.namespace),
        }
    }

    /// In words: "container app of pod shop/web-1 (containerd, 0123456789ab)".
    pub fn words(&self) -> String {
        let short = self.id.as_deref().map(|id| id.get(..SHORT).unwrap_or(id));
        let name = self.name.as_deref().or(short).unwrap_or("of no known name");
        let pod = self.pod.as_ref().or(self.pod_id.as_ref());
        let pod = match (pod, &self.namespace) {
            (Some(pod), Some(namespace)) => format!(" of pod {namespace}/{pod}"),
            (Some(pod), None) => format!(" of pod {pod}"),
            (None, _) => String::new(),
        };
        let told = [self.runtime.as_deref(), short.filter(|id| *id != name)];
        let told: Vec<&str> = told.into_iter().flatten().collect();
        if told.is_empty() {
            return format!("container {name}{pod}");
        }
        format!("container {name}{pod} ({})", told.join(", "))
    }
}

/// Letters of an id that runtimes show.
const SHORT: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_said_and_nothing_else() {
        let id = Some("0123456789abcdef".repeat(4));
        let mut container = Container {
            id,
            ..Container::default()
        };
        assert_eq!(container.words(), "container 0123456789ab");
        container.pod_id = Some("17".to_owned());
        assert_eq!(container.words(), "container 0123456789ab of pod 17");
        container = container.or(Container {
            name: Some("app".to_owned()),
            runtime: Some("containerd".to_owned()),
            pod: Some("web-1".to_owned()),
            pod_id: Some("18".to_owned()),
            namespace: Some("shop".to_owned()),
            ..Container::default()
        });
        assert_eq!(
            container.words(),
            "container app of pod shop/web-1 (containerd, 0123456789ab)"
        );
        assert_eq!(container.pod_id, Some("17".to_owned()));
        assert_eq!(Container::default().words(), "container of no known name");
    }
}
