//! The environment variables of a process: the library itself reads none of it.

use fedlink::kernels::InstructionSet;

/// Chooses the instruction set that `FEDLINK_INSTRUCTIONS` names, if it is set: `portable`, `avx2` or
/// `avx512`. The error states what is wrong with it.
pub fn choose_instructions() -> Result<(), String> {
    match std::env::var_os("FEDLINK_INSTRUCTIONS") {
        Some(name) if !name.is_empty() => InstructionSet::choose(&name.to_string_lossy())
            .map_err(|problem| format!("FEDLINK_INSTRUCTIONS: {problem}")),
        _ => Ok(()),
    }
}

/// The name of this machine.
pub(crate) fn host_name() -> String {
    gethostname::gethostname().to_string_lossy().into_owned()
}
