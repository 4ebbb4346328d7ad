"""Makes reference.csv by Google's dp_accounting (pip install dp-accounting==0.6.0).

Rows "rho": the Rényi divergence of order alpha of one round of Poisson-sampled Gaussian noise.
Rows "epsilon": that of `rounds` rounds at `delta` over the orders 2..=256, 512, 1024, and the order that
gives it; by the conversion of Canonne, Kamath and Steinke (2020), which is the one that dp_accounting has.
"""

from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.rdp import RdpAccountant

ORDERS = [*range(2, 257), 512, 1024]
ROUNDS = [  # rounds, q, z, delta
    (500, 0.25, 10.0, 1e-5),
    (500, 1.0, 10.0, 1e-5),
    (500, 0.025, 1.0, 1e-5),
    (1, 0.01, 4.0, 1e-5),
    (1000, 0.1, 2.0, 1e-6),
    (100, 0.5, 1.1, 1e-5),
    (2000, 0.001, 0.7, 1e-8),
    (50, 0.9, 30.0, 1e-3),
]


def composed(rounds: int, q: float, z: float) -> RdpAccountant:
    noise = GaussianDpEvent(z)
    accountant = RdpAccountant(ORDERS)
    accountant.compose(noise if q == 1.0 else PoissonSampledDpEvent(q, noise), rounds)
    return accountant


print("# Made by reference.py with dp_accounting 0.6.0; see there for what the columns mean.")
print("what,rounds,q,z,delta,alpha,value")
for q in (0.001, 0.025, 0.25, 0.7, 1.0):
    for z in (0.5, 1.0, 3.0, 10.0):
        rdp = dict(zip(ORDERS, composed(1, q, z)._rdp, strict=True))
        for alpha in (2, 3, 9, 64, 256, 1024):
            print(f"rho,1,{q!r},{z!r},,{alpha},{float(rdp[alpha])!r}")
for rounds, q, z, delta in ROUNDS:
    epsilon, order = composed(rounds, q, z).get_epsilon_and_optimal_order(delta)
    print(f"epsilon,{rounds},{q!r},{z!r},{delta!r},{order},{float(epsilon)!r}")
