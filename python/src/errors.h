// Converts a Status to a Python exception. Only the bindings in this folder throw; the rest of the project
// returns Status.
//
//   Check(client.Complete());                                 // throws if the status is not OK
//   const plan::PlacementPlan plan = Take(ParsePlan(text));   // throws, or returns the value
#pragma once

#include <pybind11/pybind11.h>

#include <stdexcept>
#include <utility>

#include "framework/base/status.h"

namespace penstock::python {

class StatusError : public std::runtime_error {
 public:
  explicit StatusError(Status status) : std::runtime_error(status.ToString()), status_(std::move(status)) {}
  const Status& status() const { return status_; }

 private:
  Status status_;
};

inline void Check(Status status) {
  if (!status.ok()) throw StatusError(std::move(status));
}

template <typename T>
T Take(Result<T> result) {
  if (!result.ok()) throw StatusError(std::move(result).status());
  return std::move(result).value();
}

}  // namespace penstock::python
