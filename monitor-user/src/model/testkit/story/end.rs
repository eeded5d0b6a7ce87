//! How processes end, and how records get lost.

use std::collections::BTreeMap;

use super::{MS, Story, kind_of};
use crate::event::{Exit, Loss, Oom, Reaped, Snapshot, Usage, What};
use crate::units::ProcessKey;

impl Story {
    /// The process ends with a code.
    pub fn exit(&mut self, pid: u32, code: u32) -> &mut Self {
        self.end(pid, pid, code << 8)
    }

    /// A signal ends the process.
    pub fn killed(&mut self, pid: u32, signal: u32) -> &mut Self {
        self.end(pid, pid, signal)
    }

    /// The process ends with a wait status, `tid` last, after 2 ms of CPU time of that thread.
    pub fn end(&mut self, pid: u32, tid: u32, status: u32) -> &mut Self {
        let actor = self.actor(pid);
        self.exit_row(pid, tid, status);
        if actor.owns_mm {
            self.close(actor.mm);
        }
        self
    }

    /// Only the row of an end; memory stays.
    pub fn exit_row(&mut self, pid: u32, tid: u32, status: u32) -> &mut Self {
        let exit = Exit {
            status,
            parent: self.actor(pid).parent,
            cpu_ns: 2 * MS,
            first_run_ns: self.actor(pid).first_run_ns,
            stopped_ns: Some(self.actor(pid).stopped_ns),
            reaper: None,
        };
        self.tell(pid, tid, What::Exit(exit))
    }

    /// The process ends, and the kernel gives its children to another one; pid 1 is outside of the tree.
    pub fn exit_to(&mut self, pid: u32, reaper: u32) -> &mut Self {
        let children: Vec<u32> = self.children(pid);
        for child in children {
            self.reparent(child, reaper);
        }
        let reaper = self.key_or_outside(reaper);
        self.exit(pid, 0);
        for event in self.events.iter_mut().rev() {
            if let What::Exit(exit) = &mut event.what {
                exit.reaper = Some(reaper);
                break;
            }
        }
        self
    }

    fn children(&self, pid: u32) -> Vec<u32> {
        let parent = Some(self.actor(pid).key);
        let processes = self.processes.iter();
        let of_it = processes.filter(|(_, process)| process.parent == parent);
        of_it.map(|(pid, _)| *pid).collect()
    }

    fn key_or_outside(&self, pid: u32) -> ProcessKey {
        let outside = ProcessKey { pid, start_ns: 1 };
        self.processes
            .get(&pid)
            .map_or(outside, |process| process.key)
    }

    /// The process has another parent from here on; pid 1 is outside of the tree.
    pub fn reparent(&mut self, pid: u32, parent: u32) -> &mut Self {
        let parent = self.key_or_outside(parent);
        if let Some(actor) = self.processes.get_mut(&pid) {
            actor.parent = Some(parent);
        }
        self
    }

    /// The process's parent waited for it.
    pub fn reaped(&mut self, pid: u32) -> &mut Self {
        self.tell(pid, pid, What::Reaped(Reaped::default()))
    }

    /// As [`Story::reaped`], with all that it used.
    pub fn reaped_with(&mut self, pid: u32, cpu_ns: u64, usage: Usage) -> &mut Self {
        let cpu_ns = Some(cpu_ns);
        self.tell(pid, pid, What::Reaped(Reaped { cpu_ns, usage }))
    }

    /// The OOM killer chooses the process.
    pub fn oom(&mut self, pid: u32, oom: Oom) -> &mut Self {
        self.tell(pid, pid, What::Oom(oom))
    }

    /// As [`Story::reaped`], with the kernel's sum of CPU time in ms.
    pub fn reaped_with_cpu(&mut self, pid: u32, ms: u64) -> &mut Self {
        self.reaped_with(pid, ms * MS, Usage::default())
    }

    /// The recorder finds the process at the end of the recording.
    pub fn still_there(&mut self, pid: u32, zombie: bool) -> &mut Self {
        let parent = self.actor(pid).parent;
        let snapshot = Snapshot {
            parent,
            zombie,
            first_run_ns: self.actor(pid).first_run_ns,
            stopped_ns: Some(self.actor(pid).stopped_ns),
            found: None,
        };
        self.tell(pid, pid, What::Snapshot(snapshot))
    }

    /// The last event of this kind is lost, and the kernel counted it.
    pub fn lost(&mut self, kind: &str) -> &mut Self {
        *self.recording.lost.entry(kind.to_owned()).or_default() += 1;
        self.vanished(kind)
    }

    /// The last event of this kind is lost, and nobody counted it.
    pub fn vanished(&mut self, kind: &str) -> &mut Self {
        let last = self.events.iter().rposition(|e| kind_of(&e.what) == kind);
        if let Some(at) = last {
            self.events.remove(at);
        }
        self
    }

    /// A row that tells of lost records.
    pub fn loss_row(&mut self, kind: &str, n: u64) -> &mut Self {
        let loss = Loss {
            lost: BTreeMap::from([(kind.to_owned(), n)]),
        };
        self.push(None, What::Loss(loss))
    }
}
