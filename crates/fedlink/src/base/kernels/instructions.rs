//! One loop, compiled for several instruction sets; the set is chosen when the program runs.
//!
//! A kernel is plain safe Rust in [`Kernel::run`]. It is inlined into one function per set, so the
//! compiler vectorizes it for that set. The only `unsafe` is the call of such a function. It is sound
//! because the set was found on this machine.

use std::sync::OnceLock;

/// Vector instructions that kernels are compiled for and that this machine has. Only
/// [`InstructionSet::available`] makes a set that is not portable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionSet(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The instructions that every machine of the target has.
    Portable,
    /// 256-bit vectors, fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit vectors, fused multiply-add, with bytes, double words and shorter vectors. All processors
    /// with 512-bit vectors but the first have them.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl InstructionSet {
    /// The instructions that every machine of the target has.
    pub const PORTABLE: Self = Self(Kind::Portable);

    /// Every set that this machine has, the best last.
    pub fn available() -> Vec<Self> {
        #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut, reason = "only one set there"))]
        let mut sets = vec![Self::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            sets.push(Self(Kind::Avx2));
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                sets.push(Self(Kind::Avx512));
            }
        }
        sets
    }

    /// Its name in the record of a run.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2+fma",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512f",
        }
    }

    /// Whether its vectors are of 512 bits.
    pub(super) fn has_512_bits(self) -> bool {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => true,
            _ => false,
        }
    }

    /// The set in use: the [chosen](InstructionSet::choose) one, else the best of this machine. It is
    /// decided once.
    pub fn current() -> Self {
        *CURRENT.get_or_init(|| Self::available().pop().unwrap_or(Self::PORTABLE))
    }

    /// Chooses the set called `portable`, `avx2` or `avx512`. It is an error if there is no such set, if
    /// this machine does not have it, or if kernels have run with another set already.
    pub fn choose(name: &str) -> Result<(), String> {
        const NAMES: [&str; 3] = ["portable", "avx2", "avx512"];
        let Some(index) = NAMES.iter().position(|known| *known == name) else {
            return Err(format!("{name} is no instruction set; there are {}", NAMES.join(", ")));
        };
        let available = Self::available();
        let Some(&set) = available.get(index) else {
            let names = NAMES[..available.len()].join(", ");
            return Err(format!("this machine does not have {name}; it has {names}"));
        };
        match *CURRENT.get_or_init(|| set) {
            current if current == set => Ok(()),
            current => Err(format!("kernels have run with {} already; choose {name} before", current.name())),
        }
    }
}

/// The set in use, once it is decided.
static CURRENT: OnceLock<InstructionSet> = OnceLock::new();

/// The name of the instruction set that the kernels of this process use, dense products included, for the
/// record of a run. Results are the same bit for bit on every machine that reports `portable`, for any
/// number of threads. With `avx2+fma` and `avx512f` they are the same on machines with equal first-level
/// data caches, because `gemm` splits sums of more than 512 terms by the cache.
///
/// The portable set differs from the others: a fused multiply-add rounds once, a product and a sum round
/// twice.
pub fn instruction_set() -> &'static str {
    InstructionSet::current().name()
}

/// Multiplication and addition of a set.
pub(crate) trait Arithmetic {
    /// Whether a dense product that is added to something is summed apart from it, as `gemm` does.
    const APART: bool;

    /// a·b + c.
    fn mul_add(a: f32, b: f32, c: f32) -> f32;
}

/// One rounding, and one instruction if the set has it.
struct Fused;

impl Arithmetic for Fused {
    const APART: bool = true;

    #[inline(always)]
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

/// Two roundings. Without the instruction, a fused multiply-add would be a slow call.
struct Separate;

impl Arithmetic for Separate {
    const APART: bool = false;

    #[inline(always)]
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }
}

/// A computation to be compiled for every instruction set.
///
/// Mark `run` and every function that it calls `#[inline(always)]`, and call no closure that holds the
/// hot loop. Code that is not inlined is compiled for the portable set, in which a fused multiply-add is
/// a function call.
pub(crate) trait Kernel {
    /// Its result.
    type Output;

    /// Computes it.
    fn run<A: Arithmetic>(self) -> Self::Output;
}

/// Runs a kernel with the instructions in use.
pub(crate) fn run<K: Kernel>(kernel: K) -> K::Output {
    run_on(InstructionSet::current(), kernel)
}

/// Runs a kernel with the instructions of `set`.
pub(crate) fn run_on<K: Kernel>(set: InstructionSet, kernel: K) -> K::Output {
    match set.0 {
        Kind::Portable => kernel.run::<Separate>(),
        // SAFETY: only `available` makes a set of this kind, after it has found on this machine all
        // features for which the function is compiled.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => unsafe { with_avx2(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => unsafe { with_avx512(kernel) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn with_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Fused>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn with_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Fused>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_portable_set_and_the_set_in_use_are_available() {
        let sets = InstructionSet::available();
        assert_eq!(sets[0], InstructionSet::PORTABLE);
        assert!(sets.contains(&InstructionSet::current()));
        assert_eq!(instruction_set(), InstructionSet::current().name());
        // The test harness does not capture the log, so that a test run names the instruction sets that
        // it tested.
        let names: Vec<&str> = sets.iter().map(|set| set.name()).collect();
        let mut log = std::io::stderr();
        let _ = writeln!(log, "kernels are tested with the instruction sets {}", names.join(", "));
    }

    #[test]
    fn a_set_that_is_unknown_or_that_this_machine_lacks_cannot_be_chosen() {
        assert!(InstructionSet::choose("sse9").unwrap_err().contains("there are portable, avx2, avx512"));
        assert!(InstructionSet::choose("").is_err() && InstructionSet::choose("AVX2").is_err());
        for missing in &["portable", "avx2", "avx512"][InstructionSet::available().len()..] {
            assert!(InstructionSet::choose(missing).unwrap_err().starts_with("this machine does not have"));
        }
    }
}
