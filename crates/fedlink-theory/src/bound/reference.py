"""Makes reference.csv: the bound in closed form with 50 digits (pip install mpmath).

x(T) = Π A(i)·x(0) + Σ_j B(j)·Π_{i>j} A(i), each term of B by itself; the loss bound is (L/2)·x(T).
"""
from mpmath import mp, mpf, nstr

mp.dps = 50
CASES = [  # M, K, τ, μ, L, G, Γ, x(0), rho, c, T; decimal texts, so that both sides read the same double
    ("100", "1", "3", "1", "5", "1", "1", "500", "0.0125", "1000", "1000"),
    ("100", "5", "3", "1", "5", "10", "10", "500", "0.00375", "1000", "1000"),
    ("100", "20", "3", "1", "5", "1", "1", "500", "0.001", "1000", "1000"),
    ("100", "5", "1", "0.25", "5", "10", "10", "500", "0.00375", "1000", "1000"),
    ("100", "5", "20", "0.25", "5", "10", "10", "500", "0.00375", "1000", "1000"),
    ("40", "40", "2", "0.7", "0.7", "0.3", "0", "12.5", "0.5", "10", "300"),
    ("2", "1", "7", "3.3", "11", "2", "0.1", "1", "0.25", "50", "700"),
    ("1", "1", "4", "0.1", "2", "1.5", "2", "80", "0.5", "30", "200"),
    ("1000", "300", "15", "2", "2.5", "0.01", "7", "3", "0.0625", "1", "400"),
    ("10", "3", "1", "0.2", "1", "4", "9", "0", "0.375", "200", "100"),
    ("100", "10", "5", "1", "5", "0", "0", "500", "0.1", "1000", "500"),
    ("57", "13", "9", "0.6", "4", "3", "0.5", "250", "0.015625", "400", "1"),
]

print("# Made by reference.py with mpmath, 50 digits; see there for what the columns mean.")
print("m,k,tau,mu,l,g,gamma,x0,rho,c,rounds,loss,initial,scheduling,drift,noise,heterogeneity")
for case in CASES:
    M, K, tau, mu, L, G, Gamma, x0, rho0, c, T = (mpf(float(text)) for text in case)
    limit = min(mpf(1), 1 / (mu * tau))
    T = int(T)
    eta = [limit * c / (t + c) for t in range(T)]
    rho = [rho0 * (1 + mpf(t % 7) / 7) for t in range(T)]
    A = [1 - mu * r * e * (tau - e * (tau - 1)) for r, e in zip(rho, eta)]
    after = [mpf(1)] * (T + 1)  # after[j] = Π_{i ≥ j} A(i)
    for t in reversed(range(T)):
        after[t] = after[t + 1] * A[t]
    share = mpf(0) if M == 1 else (M - K) / (K * (M - 1))
    terms = [
        [share * r * e**2 * tau**2 * G**2 for r, e in zip(rho, eta)],
        [
            r * (1 + mu * (1 - e)) * e**2 * G**2 * tau * (tau - 1) * (2 * tau - 1) / 6
            for r, e in zip(rho, eta)
        ],
        [r * e**2 * (tau**2 + tau - 1) * G**2 for r, e in zip(rho, eta)],
        [2 * r * e * (tau - 1) * Gamma for r, e in zip(rho, eta)],
    ]
    parts = [L / 2 * after[0] * x0]
    parts += [L / 2 * sum(b * after[j + 1] for j, b in enumerate(term)) for term in terms]
    print(",".join([*case, *(nstr(value, 17) for value in [sum(parts), *parts])]))
