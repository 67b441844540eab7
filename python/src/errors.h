// The edge where Status becomes a Python exception: the only place of the project that throws.
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
