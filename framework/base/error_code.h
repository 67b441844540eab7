// Converts the number of an error code, as read from a peer or a file.
#pragma once

#include <cstdint>
#include <optional>

#include "framework/base/status.h"

namespace penstock {

// Returns nullopt if the number is no error code. kOk is not an error code.
inline std::optional<StatusCode> ErrorCodeOf(std::int64_t number) {
  if (number != static_cast<std::uint8_t>(number)) return std::nullopt;
  const auto code = static_cast<StatusCode>(number);
  switch (code) {
    case StatusCode::kCancelled:
    case StatusCode::kInvalidArgument:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kUnimplemented:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kInternal:
    case StatusCode::kUnavailable:
    case StatusCode::kDataLoss:
      return code;
    case StatusCode::kOk:
      break;
  }
  return std::nullopt;
}

}  // namespace penstock
