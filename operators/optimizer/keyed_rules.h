// MXNet's rules for one element of a key, as keyed_update.cc documents them. A rule reads the parameter and
// its states and writes their new values, which may have the same memory:
//
//   grad.ForEach(KeyedMomentum<float>{values, mu});
#pragma once

#include <cmath>
#include <cstdint>

#include "operators/common/nan.h"

namespace penstock {

// What all rules use.
template <typename T>
struct KeyedValues {
  T rate, decay, rescale, clip;  // clip 0: off
  const T* param;
  T* param_out;
  const T* state[3];
  T* state_out[3];

  T Clipped(T x) const { return clip > 0 ? (x > clip ? clip : x < -clip ? -clip : x) : x; }
  T Scaled(T g) const { return Clipped(rescale * g); }
  T WithDecay(T g, T w) const { return Clipped(rescale * g + decay * w); }
};

template <typename T>
struct KeyedSgd {
  KeyedValues<T> v;
  void operator()(std::int64_t i, T g) const {
    const T w = v.param[i];
    v.param_out[i] = w + (-v.rate * v.decay * w - v.rate * v.Scaled(g));
  }
};
template <typename T>
struct KeyedMomentum {
  KeyedValues<T> v;
  T mu;
  void operator()(std::int64_t i, T g) const {
    const T w = v.param[i];
    const T m = mu * v.state[0][i] - v.rate * v.decay * w - v.rate * v.Scaled(g);
    v.state_out[0][i] = m;
    v.param_out[i] = w + m;
  }
};

template <typename T>
struct KeyedNag {
  KeyedValues<T> v;
  void operator()(std::int64_t i, T g) const {
    const T w = v.param[i];
    v.param_out[i] = w - v.rate * (v.Scaled(g) + v.decay * w);
  }
};
template <typename T>
struct KeyedNagMomentum {
  KeyedValues<T> v;
  T mu;
  void operator()(std::int64_t i, T g) const {
    const T w = v.param[i];
    const T kept = mu * v.state[0][i];
    const T m = kept - v.rate * (v.Scaled(g) + v.decay * w);
    v.state_out[0][i] = m;
    v.param_out[i] = w + (-kept + (T{1} + mu) * m);
  }
};

// `step` is the rate, corrected for the start of the averages.
template <typename T>
struct KeyedAdam {
  KeyedValues<T> v;
  T beta1, beta2, epsilon, step;
  void operator()(std::int64_t i, T g) const {
    const T w = v.param[i], x = v.WithDecay(g, w);
    const T m = beta1 * v.state[0][i] + (T{1} - beta1) * x;
    const T s = beta2 * v.state[1][i] + (T{1} - beta2) * x * x;
    v.state_out[0][i] = m;
    v.state_out[1][i] = s;
    v.param_out[i] = w - step * m / (std::sqrt(s) + epsilon);
  }
};

template <typename T>
struct KeyedAdagrad {
  KeyedValues<T> v;
  T epsilon;
  void operator()(std::int64_t i, T g) const {
    const T w = v.param[i], x = v.Scaled(g);
    const T h = v.state[0][i] + x * x;
    v.state_out[0][i] = h;
    v.param_out[i] = w - v.rate * (x / std::sqrt(h + epsilon) + v.decay * w);
  }
};

// `most` bounds the weights; 0: off.
template <typename T>
struct KeyedRmsprop {
  KeyedValues<T> v;
  T gamma1, epsilon, most;
  void operator()(std::int64_t i, T g) const {
    const T w = v.param[i], x = v.WithDecay(g, w);
    const T n = (T{1} - gamma1) * x * x + gamma1 * v.state[0][i];
    v.state_out[0][i] = n;
    v.param_out[i] = Bounded(w - v.rate * (x / std::sqrt(n + epsilon)), most);
  }
  static T Bounded(T w, T most) { return most > 0 ? (w > most ? most : w < -most ? -most : w) : w; }
};
template <typename T>
struct KeyedRmspropCentered {
  KeyedValues<T> v;
  T gamma1, gamma2, epsilon, most;
  void operator()(std::int64_t i, T g) const {
    const T w = v.param[i], x = v.WithDecay(g, w);
    const T n = (T{1} - gamma1) * x * x + gamma1 * v.state[0][i];
    const T mean = (T{1} - gamma1) * x + gamma1 * v.state[1][i];
    const T d = gamma2 * v.state[2][i] - v.rate * (x / std::sqrt(n - mean * mean + epsilon));
    v.state_out[0][i] = n;
    v.state_out[1][i] = mean;
    v.state_out[2][i] = d;
    v.param_out[i] = KeyedRmsprop<T>::Bounded(w + d, most);
  }
};

template <typename T>
struct KeyedAdadelta {
  KeyedValues<T> v;
  T rho, epsilon;
  void operator()(std::int64_t i, T g) const {
    const T w = v.param[i], x = v.Scaled(g);
    const T a = rho * v.state[0][i] + (T{1} - rho) * x * x;
    const T step = std::sqrt(v.state[1][i] + epsilon) / std::sqrt(a + epsilon) * x;
    v.state_out[0][i] = a;
    v.state_out[1][i] = rho * v.state[1][i] + (T{1} - rho) * step * step;
    v.param_out[i] = w - (step + v.decay * w);
  }
};

template <typename T>
struct KeyedFtrl {
  KeyedValues<T> v;
  T lamda1, beta;
  void operator()(std::int64_t i, T g) const {
    const T w = v.param[i], x = v.Scaled(g), n = v.state[1][i];
    const T n_out = n + x * x;
    const T z = v.state[0][i] + (x - (std::sqrt(n_out) - std::sqrt(n)) * w / v.rate);
    v.state_out[0][i] = z;
    v.state_out[1][i] = n_out;
    const T moved = (std::copysign(lamda1, z) - z) / ((beta + std::sqrt(n_out)) / v.rate + v.decay);
    v.param_out[i] = std::abs(z) <= lamda1 ? T{0} : moved;
  }
};

template <typename T>
T KeyedSign(T x) {
  return Choose(x > 0, T{1}, Choose(x < 0, T{-1}, T{0}, x), x);
}
template <typename T>
struct KeyedSignSgd {
  KeyedValues<T> v;
  void operator()(std::int64_t i, T g) const {
    v.param_out[i] = (T{1} - v.rate * v.decay) * v.param[i] - v.rate * KeyedSign(g);
  }
};
template <typename T>
struct KeyedSignum {
  KeyedValues<T> v;
  T mu, wd_lh;
  void operator()(std::int64_t i, T g) const {
    const T w = v.param[i];
    const T m = mu * v.state[0][i] - (T{1} - mu) * (v.decay * w + v.Scaled(g));
    v.state_out[0][i] = m;
    v.param_out[i] = (T{1} - v.rate * wd_lh) * w + v.rate * KeyedSign(m);
  }
};

// Where all gradients were 0, the step is 0, not 0 / 0.
template <typename T>
struct KeyedAdamax {
  KeyedValues<T> v;
  T beta1, beta2, step;
  void operator()(std::int64_t i, T g) const {
    const T w = v.param[i], x = v.WithDecay(g, w);
    const T m = beta1 * v.state[0][i] + (T{1} - beta1) * x;
    const T u = MaxOrNan(beta2 * v.state[1][i], std::abs(x));
    v.state_out[0][i] = m;
    v.state_out[1][i] = u;
    v.param_out[i] = u == 0 ? w : w - step * m / u;
  }
};

// The factors of the gradient, the average and the square are those of this step.
template <typename T>
struct KeyedNadam {
  KeyedValues<T> v;
  T beta1, beta2, epsilon;
  T of_gradient, of_average, of_square;
  void operator()(std::int64_t i, T g) const {
    const T w = v.param[i], x = v.WithDecay(g, w);
    const T m = beta1 * v.state[0][i] + (T{1} - beta1) * x;
    const T s = beta2 * v.state[1][i] + (T{1} - beta2) * x * x;
    v.state_out[0][i] = m;
    v.state_out[1][i] = s;
    v.param_out[i] = w - v.rate * (of_gradient * x + of_average * m) / (std::sqrt(s * of_square) + epsilon);
  }
};

// `correct1` is 1 - beta1^t, `correct2` 1 - beta2^t.
template <typename T>
struct KeyedFtml {
  KeyedValues<T> v;
  T beta1, beta2, epsilon, correct1, correct2;
  void operator()(std::int64_t i, T g) const {
    const T w = v.param[i], x = v.WithDecay(g, w);
    const T s = beta2 * v.state[1][i] + (T{1} - beta2) * x * x;
    const T d = correct1 / v.rate * (std::sqrt(s / correct2) + epsilon);
    const T z = beta1 * v.state[2][i] + (T{1} - beta1) * x - (d - beta1 * v.state[0][i]) * w;
    v.state_out[0][i] = d;
    v.state_out[1][i] = s;
    v.state_out[2][i] = z;
    v.param_out[i] = -z / d;
  }
};

// `count` is the number of the update; before the first one there is no earlier parameter.
template <typename T>
struct KeyedDcasgd {
  KeyedValues<T> v;
  T lamda, count;
  void operator()(std::int64_t i, T g) const {
    const T w = v.param[i], x = v.Scaled(g);
    const T earlier = Choose(count == 1, w, v.state[0][i], count);
    v.state_out[0][i] = w;
    v.param_out[i] = w - v.rate * (x + v.decay * w + lamda * x * x * (w - earlier));
  }
};

template <typename T>
struct KeyedTest {
  KeyedValues<T> v;
  void operator()(std::int64_t i, T g) const { v.param_out[i] = v.param[i] + v.rescale * g; }
};

}  // namespace penstock
