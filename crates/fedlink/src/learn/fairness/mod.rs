//! Fairness: the accuracy of classes and devices, and the evenness of scheduling (`run.fairness`).
//!
//! Devices have no test sets of their own. If they differ only in their mix of classes, the accuracy of
//! device m is acc_m = Σ_c p_mc·acc_c, with p_mc the share of class c in its training samples and acc_c the
//! accuracy on the test samples of class c. One evaluation gives the accuracies of all devices.
//!
//! | metric | meaning |
//! |---|---|
//! | `class_0`, `class_1`, … | acc_c, the share of correct answers among the test samples of a class |
//! | `worst_class` | the lowest acc_c |
//! | `worst_tenth` | the mean of the ⌈M/10⌉ lowest acc_m |
//! | `worst_device` | the lowest acc_m; no digest depends on it |
//! | `device_deviation` | the standard deviation of acc_m over the M devices (divided by M) |
//! | `device_gini` | the Gini coefficient of acc_m, Σ_ij abs(acc_i − acc_j)/(2M·Σ acc) |
//! | `jain` | Jain's index of the numbers of times devices were scheduled, (Σx)²/(M·Σx²); 1 before the first |
//! | `max_age`, `mean_age` | over the devices, rounds since they were last scheduled; 0 in that round |

mod class_accuracy;
mod evenness;

pub use class_accuracy::{ClassTable, WORST_DEVICE, class_accuracies};
pub use evenness::jain;
