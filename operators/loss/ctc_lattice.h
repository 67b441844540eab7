// The ways in which the steps of one sequence can say a label: each element of the label for one or more
// steps, with blanks between, which two equal neighbours need.
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

// Keeps its memory from one sequence to the next. Computes in f64, in logarithms.
template <typename T>
class CtcLattice {
 public:
  // Rows of classes, one for each step, `stride` elements apart.
  template <typename U>
  struct Rows {
    U* data;
    Dim stride;
  };

  CtcLattice(Dim classes, Dim blank) : classes_(classes), blank_(blank) {}

  // The negative logarithm of the probability of `label`; `gradient` gets that of the logits. A label that no
  // way can say, because there are too few steps, costs 0 and leaves `gradient` as it is. The elements of
  // the label are in [0, classes).
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

  // place_: blank, label[0], blank, label[1] ... blank.
  void Expand(const std::int32_t* label, Dim length) {
    place_.assign(static_cast<std::size_t>(2 * length + 1), blank_);
    for (Dim i = 0; i < length; ++i) place_[static_cast<std::size_t>(2 * i + 1)] = label[i];
  }
  Dim Places() const { return static_cast<Dim>(place_.size()); }
  Dim ClassAt(Dim place) const { return place_[static_cast<std::size_t>(place)]; }
  // Whether the blank before `place` can be left out.
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

  // Alpha(t, p): what steps 0 to t say up to place p.
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

  // Softmax less the share of the ways that take each class, step by step from the last one. beta_[p]: what
  // the steps after t say from place p on.
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
  // From what follows step t to what follows step t - 1. A place reads only later ones, which it comes after.
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
