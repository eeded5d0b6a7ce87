//! The environment that a program begins with.

/// Values of those variables that are kept: they change what a program does with memory and CPUs. No other is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `NAME=value` as the program got them, in that order.
    pub values: Vec<Vec<u8>>,
    /// Whether all of the environment could be looked through.
    pub is_whole: bool,
}

/// Variables by which launchers of parallel programs tell a process which one of its siblings it is: `PMIx` (Open MPI,
/// Slurm), PMI (MPICH and what comes from it), Open MPI itself, Slurm.
pub const RANKS: [&[u8]; 4] = [
    b"PMIX_RANK",
    b"PMI_RANK",
    b"OMPI_COMM_WORLD_RANK",
    b"SLURM_PROCID",
];

/// Names of the variables that are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Besides those that always are.
    pub more: Vec<Vec<u8>>,
}

impl Kept {
    /// Whether a variable is one of them: `*_NUM_THREADS`, `MALLOC_*`, `PYTHONMALLOC`, `CUDA_VISIBLE_DEVICES`, the
    /// numbers of parallel programs' processes ([`RANKS`]) and what was asked for.
    pub fn contains(&self, name: &[u8]) -> bool {
        name.ends_with(b"_NUM_THREADS")
            || name.starts_with(b"MALLOC_")
            || name == b"PYTHONMALLOC"
            || name == b"CUDA_VISIBLE_DEVICES"
            || RANKS.contains(&name)
            || self.more.iter().any(|more| more == name)
    }
}
