// The alignments of one sequence of steps with a label. Each element of the label takes one or more steps;
// blanks may stand between elements, and must stand between two equal ones.
//
// A. Graves, S. Fernandez, F. Gomez, J. Schmidhuber: "Connectionist Temporal Classification", ICML 2006.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "framework/tensor/shape.h"

namespace penstock {

// Reuses its memory for the next sequence. Computes in logarithms and in f64.
template <typename T>
class CtcLattice {
 public:
  // One row of class values per step, `stride` elements apart.
  template <typename U>
  struct Rows {
    U* data;
    Dim stride;
  };

  CtcLattice(Dim classes, Dim blank) : classes_(classes), blank_(blank) {}

  // Returns the negative log-probability of `label`, and stores the gradient of the logits in `gradient`. If
  // there are too few steps for the label, returns 0 and does not change `gradient`. The elements of the
  // label must be in [0, classes).
  T CostOf(Rows<const T> logits, Rows<T> gradient, Dim steps, const std::int32_t* label, Dim length) {
    steps_ = steps;
    Expand(label, length);
    Dim needed = length;
    for (Dim i = 1; i < length; ++i) needed += label[i] == label[i - 1] ? 1 : 0;
    if (needed > steps || steps == 0) return T{0};
    LogSoftmax(logits);
    Forward();
    const Dim last = Places() - 1;
    const double cost = -LogSum(Alpha(steps - 1, last), last > 0 ? Alpha(steps - 1, last - 1) : kNever);
    Differentiate(gradient, cost);
    return static_cast<T>(cost);
  }

 private:
  static constexpr double kNever = -std::numeric_limits<double>::infinity();

  static double LogSum(double a, double b) {
    if (a == kNever) return b;
    if (b == kNever) return a;
    return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
  }

  // Sets place_ to blank, label[0], blank, label[1] ... blank.
  void Expand(const std::int32_t* label, Dim length) {
    place_.assign(static_cast<std::size_t>(2 * length + 1), blank_);
    for (Dim i = 0; i < length; ++i) place_[static_cast<std::size_t>(2 * i + 1)] = label[i];
  }
  Dim Places() const { return static_cast<Dim>(place_.size()); }
  Dim ClassAt(Dim place) const { return place_[static_cast<std::size_t>(place)]; }
  // Returns whether an alignment may skip the blank before `place`.
  bool Skips(Dim place) const {
    return place >= 2 && ClassAt(place) != blank_ && ClassAt(place) != ClassAt(place - 2);
  }
  double& Alpha(Dim step, Dim place) { return alpha_[static_cast<std::size_t>(step * Places() + place)]; }
  double LogProbability(Dim step, Dim place) const {
    return log_softmax_[static_cast<std::size_t>(step * classes_ + ClassAt(place))];
  }

  void LogSoftmax(Rows<const T> logits) {
    log_softmax_.resize(static_cast<std::size_t>(steps_ * classes_));
    for (Dim t = 0; t < steps_; ++t) {
      const T* const row = logits.data + t * logits.stride;
      const double peak = static_cast<double>(*std::max_element(row, row + classes_));
      double sum = 0;
      for (Dim c = 0; c < classes_; ++c) sum += std::exp(static_cast<double>(row[c]) - peak);
      const double log_sum = peak + std::log(sum);
      for (Dim c = 0; c < classes_; ++c)
        log_softmax_[static_cast<std::size_t>(t * classes_ + c)] = static_cast<double>(row[c]) - log_sum;
    }
  }

  // Alpha(t, p): log-probability of all alignments of steps 0 to t that end at place p.
  void Forward() {
    alpha_.assign(static_cast<std::size_t>(steps_ * Places()), kNever);
    for (Dim p = 0; p < std::min<Dim>(2, Places()); ++p) Alpha(0, p) = LogProbability(0, p);
    for (Dim t = 1; t < steps_; ++t) {
      for (Dim p = 0; p < Places(); ++p) {
        double sum = Alpha(t - 1, p);
        if (p >= 1) sum = LogSum(sum, Alpha(t - 1, p - 1));
        if (Skips(p)) sum = LogSum(sum, Alpha(t - 1, p - 2));
        Alpha(t, p) = sum + LogProbability(t, p);
      }
    }
  }

  // The gradient is the softmax minus the posterior probability of each class, computed from the last step to
  // the first. beta_[p]: log-probability of all alignments of the steps after t that continue from place p.
  void Differentiate(Rows<T> gradient, double cost) {
    beta_.assign(place_.size(), kNever);
    for (Dim p = std::max<Dim>(0, Places() - 2); p < Places(); ++p) beta_[static_cast<std::size_t>(p)] = 0;
    for (Dim t = steps_ - 1; t >= 0; --t) {
      T* const row = gradient.data + t * gradient.stride;
      for (Dim c = 0; c < classes_; ++c)
        row[c] = static_cast<T>(std::exp(log_softmax_[static_cast<std::size_t>(t * classes_ + c)]));
      for (Dim p = 0; p < Places(); ++p)
        row[ClassAt(p)] -= static_cast<T>(std::exp(Alpha(t, p) + beta_[static_cast<std::size_t>(p)] + cost));
      if (t > 0) StepBack(t);
    }
  }
  // Changes beta_ from the steps after t to the steps after t - 1. In place: a place reads only itself and
  // later places, which are updated after it.
  void StepBack(Dim t) {
    const auto said = [&](Dim p) { return beta_[static_cast<std::size_t>(p)] + LogProbability(t, p); };
    for (Dim p = 0; p < Places(); ++p) {
      double sum = said(p);
      if (p + 1 < Places()) sum = LogSum(sum, said(p + 1));
      if (p + 2 < Places() && Skips(p + 2)) sum = LogSum(sum, said(p + 2));
      beta_[static_cast<std::size_t>(p)] = sum;
    }
  }

  Dim classes_, blank_, steps_ = 0;
  std::vector<Dim> place_;
  std::vector<double> log_softmax_, alpha_, beta_;
};

}  // namespace penstock
