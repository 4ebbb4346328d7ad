//! The arithmetic that takes most of the time.

mod convolution;
mod exp;
mod hadamard;
#[expect(unsafe_code, reason = "functions for an instruction set are called where the machine has it")]
mod instructions;
mod layer;
#[expect(unsafe_code, reason = "the matrix product of gemm takes pointers")]
mod matmul;
mod max_pool;
mod norm;
mod patches;
#[expect(unsafe_code, reason = "the instruction that fetches memory ahead takes a pointer")]
mod prefetch;
mod sparse_batch;
mod sparse_product;

pub use convolution::Filters;
pub use exp::exp;
pub use hadamard::hadamard;
pub(crate) use instructions::{Arithmetic, Kernel, run};
pub use instructions::{InstructionSet, instruction_set};
pub use layer::{fill_rows, relu, relu_gradient, sum_rows};
#[cfg(test)]
use matmul::matmul_on;
pub use matmul::{Matrix, matmul};
pub use max_pool::{pool, pooled_shape, unpool, unpool_sparse};
pub use norm::{has_finite_norm, norm, subtract};
pub use patches::Window;
pub use prefetch::{Ahead, prefetch};
pub use sparse_batch::SparseBatch;
pub use sparse_product::{
    PackedGradient, Panels, pack_output_gradient, sparse_forward, sparse_forward_ahead, sparse_gradient,
    sparse_gradient_by_row,
};

#[cfg(test)]
mod tests {
    use proptest::collection::{SizeRange, vec};
    use proptest::prelude::*;

    /// Every kind of float: NaN, ±∞, ±0, subnormal, ordinary.
    pub fn any_floats(size: impl Into<SizeRange>) -> impl Strategy<Value = Vec<f32>> {
        vec(prop_oneof![4 => -10.0..10.0f32, 1 => any::<f32>(), 1 => Just(0.0)], size)
    }
}
