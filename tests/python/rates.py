"""Learning-rate schedules with each of their options: the layer call, and the expected rate of step s, from 0."""

import math


def warmed_up(rate, steps, start, end):
    return lambda s: start + (end - start) * s / steps if s < steps else rate(s)


def polynomial(cycle, power):
    def rate(s):
        steps = 6 * max(1, math.ceil(s / 6)) if cycle else 6
        return (0.1 - 0.01) * (1 - min(s, steps) / steps) ** power + 0.01

    return rate


BY_FORMULA = {
    "noam": (lambda L: L.noam_decay(16, 5, 2.0), lambda s: 2 * 16**-0.5 * min((s + 1) ** -0.5, (s + 1) * 5**-1.5)),
    "exponential": (lambda L: L.exponential_decay(0.1, 4, 0.7), lambda s: 0.1 * 0.7 ** (s / 4)),
    "exponential_staircase": (lambda L: L.exponential_decay(0.1, 4, 0.7, True), lambda s: 0.1 * 0.7 ** (s // 4)),
    "natural_exp": (lambda L: L.natural_exp_decay(0.1, 4, 0.7), lambda s: 0.1 * math.exp(-0.7 * (s / 4))),
    "natural_exp_staircase": (
        lambda L: L.natural_exp_decay(0.1, 4, 0.7, True),
        lambda s: 0.1 * math.exp(-0.7 * (s // 4)),
    ),
    "inverse_time": (lambda L: L.inverse_time_decay(0.1, 4, 0.7), lambda s: 0.1 / (1 + 0.7 * (s / 4))),
    "inverse_time_staircase": (lambda L: L.inverse_time_decay(0.1, 4, 0.7, True), lambda s: 0.1 / (1 + 0.7 * (s // 4))),
    "polynomial": (lambda L: L.polynomial_decay(0.1, 6, 0.01, 2.0), polynomial(False, 2)),
    "polynomial_cycle": (lambda L: L.polynomial_decay(0.1, 6, 0.01, 2.0, True), polynomial(True, 2)),
    "piecewise": (lambda L: L.piecewise_decay([3, 7], [0.3, 0.2, 0.1]), lambda s: (0.3, 0.2, 0.1)[(s >= 3) + (s >= 7)]),
    "cosine": (lambda L: L.cosine_decay(0.1, 3, 5), lambda s: 0.05 * (math.cos(s // 3 * math.pi / 5) + 1)),
    "warmup_number": (lambda L: L.linear_lr_warmup(0.1, 4, 0.02, 0.08), warmed_up(lambda s: 0.1, 4, 0.02, 0.08)),
    "warmup_polynomial_cycle": (
        lambda L: L.linear_lr_warmup(L.polynomial_decay(0.1, 6, 0.01, 1.0, True), 5, 0.0, 0.1),
        warmed_up(polynomial(True, 1), 5, 0.0, 0.1),
    ),
    # Plain ops after a schedule, and before a warm-up.
    "exponential_halved": (lambda L: L.exponential_decay(0.1, 4, 0.7) * 0.5, lambda s: 0.05 * 0.7 ** (s / 4)),
    "natural_exp_at_least": (
        lambda L: L.elementwise_max(L.natural_exp_decay(0.1, 4, 0.7), L.fill_constant([1], "float32", 0.02)),
        lambda s: max(0.02, 0.1 * math.exp(-0.7 * (s / 4))),
    ),
    "warmup_polynomial_cycle_halved": (
        lambda L: L.linear_lr_warmup(L.polynomial_decay(0.1, 6, 0.01, 1.0, True) * 0.5, 5, 0.0, 0.1),
        warmed_up(lambda s: 0.5 * polynomial(True, 1)(s), 5, 0.0, 0.1),
    ),
}

# The schedules that one program may combine, as in Fluid: schedules share a counter, which noam starts from 1, and
# warm-ups share a variable.
TOGETHER = [name for name in BY_FORMULA if name not in ("noam", "warmup_number", "warmup_polynomial_cycle")]
# The factor of each parameter's rate.
MULTIPLIERS = {name: 1.0 if i % 2 == 0 else 0.5 for i, name in enumerate(TOGETHER)}
