// One sequence of a linear-chain conditional random field: the forward and backward vectors, each scaled to a
// sum of 1.
//
// Weights are [tags + 2, tags]: row 0 holds the weights of the first tag, row 1 those of the last tag, row 2
// + a those of transitions from tag a to each tag.
//
// J. Lafferty, A. McCallum, F. Pereira: "Conditional random fields", ICML 2001.
#pragma once

#include <cmath>
#include <cstdint>

#include "framework/base/status.h"
#include "framework/tensor/shape.h"

namespace penstock {

template <typename T>
class LinearChain {
 public:
  // `weights` holds the exponentials of the weights.
  LinearChain(const T* weights, Dim tags)
      : start_(weights), stop_(weights + tags), between_(weights + 2 * tags), tags_(tags) {}

  // Sets alpha[i, t] to the probability of tag t at step i, given the steps up to i. `emission` holds
  // exponentials. Returns the logarithm of the partition function, the weights of the last tag included;
  // -infinity if no sequence of tags is possible.
  T Forward(const T* emission, Dim length, T* alpha) const {
    T log_sum = 0;
    for (Dim i = 0; i < length; ++i) {
      const T* const before = alpha + (i - 1) * tags_;
      T* const now = alpha + i * tags_;
      for (Dim t = 0; t < tags_; ++t) now[t] = i == 0 ? start_[t] : T{0};
      for (Dim b = 0; i > 0 && b < tags_; ++b) {
        for (Dim t = 0; t < tags_; ++t) now[t] += before[b] * between_[b * tags_ + t];
      }
      for (Dim t = 0; t < tags_; ++t) now[t] *= emission[i * tags_ + t];
      log_sum += std::log(Scale(now));
    }
    T end = 0;
    for (Dim t = 0; t < tags_; ++t) end += alpha[(length - 1) * tags_ + t] * stop_[t];
    return log_sum + std::log(end);
  }

  // Sets beta[i, t] to the weight of all sequences of tags that may follow tag t of step i, scaled.
  void Backward(const T* emission, Dim length, T* beta) const {
    for (Dim i = length - 1; i >= 0; --i) {
      T* const now = beta + i * tags_;
      const T* const after = now + tags_;
      const T* const seen = emission + (i + 1) * tags_;
      for (Dim t = 0; t < tags_; ++t) {
        now[t] = i == length - 1 ? stop_[t] : T{0};
        for (Dim a = 0; i < length - 1 && a < tags_; ++a)
          now[t] += between_[t * tags_ + a] * seen[a] * after[a];
      }
      Scale(now);
    }
  }

  // Adds `scale` times the probability of each transition, summed over the steps, to `to`, [tags, tags].
  void AddPairs(const T* emission, Dim length, const T* alpha, const T* beta, T scale, T* to) const {
    for (Dim i = 1; i < length; ++i) {
      const auto pair = [&](Dim b, Dim t) {
        return alpha[(i - 1) * tags_ + b] * between_[b * tags_ + t] * emission[i * tags_ + t] *
               beta[i * tags_ + t];
      };
      T sum = 0;
      for (Dim b = 0; b < tags_; ++b) {
        for (Dim t = 0; t < tags_; ++t) sum += pair(b, t);
      }
      for (Dim b = 0; b < tags_; ++b) {
        for (Dim t = 0; t < tags_; ++t) to[b * tags_ + t] += scale * pair(b, t) / sum;
      }
    }
  }

 private:
  // Divides a row by its sum. Returns the sum.
  T Scale(T* row) const {
    T sum = 0;
    for (Dim t = 0; t < tags_; ++t) sum += row[t];
    for (Dim t = 0; t < tags_; ++t) row[t] /= sum;
    return sum;
  }

  const T *start_, *stop_, *between_;
  Dim tags_;
};

}  // namespace penstock
