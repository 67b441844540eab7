// Errors as values. No exception leaves C++ except at the Python edge.
//
//   Result<Program> Load(const std::string& path) {
//     PENSTOCK_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
//     if (bytes.empty()) return InvalidArgument("E-load-empty", path, " is empty");
//     return ParseProgram(bytes);
//   }
//
// A message is one line in lower case without a full stop: which rule broke and the values on both sides.
// Further lines (the op as printed, the user's line, a note) are added with `With`. The id is stable and may
// be searched for.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "framework/base/check.h"
#include "framework/base/strings.h"

namespace penstock {

// gRPC's codes, each with what the caller should do about it.
enum class StatusCode {
  kOk = 0,
  kCancelled = 1,           // the user asked for it; nothing to do
  kInvalidArgument = 3,     // edit the program or the configuration
  kDeadlineExceeded = 4,    // retry, or restart the peer named in the message
  kUnimplemented = 12,      // use the alternative named in the message
  kFailedPrecondition = 9,  // do the step named in the message first
  kInternal = 13,           // our bug: keep the reproducer
  kUnavailable = 14,        // retry, or restart the peer named in the message
  kDataLoss = 15,           // bad bytes: fetch the file again
};

// One word, null when ok: what tells of an error is on the heap. A Status that was moved from is ok.
class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  Status(StatusCode code, std::string id, std::string message);
  Status(const Status& other) : error_(other.ok() ? nullptr : Copy(*other.error_)) {}
  Status(Status&&) noexcept = default;
  Status& operator=(const Status& other) { return *this = Status(other); }
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  bool ok() const { return error_ == nullptr; }
  StatusCode code() const;
  const std::string& id() const;       // "E-shape-mul"
  const std::string& message() const;  // the first line, without "error: " and id
  const std::vector<std::string>& details() const;

  // Adds one line below the message (indentation is added when printed). No effect when ok.
  Status&& With(std::string line) && { return std::move(With(std::move(line))); }
  Status& With(std::string line) &;
  // Puts "what: " in front of the message. No effect when ok.
  Status&& In(std::string_view what) &&;

  // "mul: width ...   [E-shape-mul]\n  op 3 of block 0: ..."; "ok" when ok.
  std::string ToString() const;

 private:
  template <typename T>
  friend class Result;
  struct Error;
  // Out of line, so that a caller contains no code for what happens only after an error.
  struct Delete {
    void operator()(Error* error) const;
  };
  using ErrorPtr = std::unique_ptr<Error, Delete>;
  static ErrorPtr Copy(const Error& error);
  static const Status& SharedOk();
  [[noreturn]] static void NoValue(const Status& why);  // a Result was read that has none

  ErrorPtr error_;
};

inline Status OkStatus() { return Status(); }

template <typename... Parts>
Status InvalidArgument(std::string id, const Parts&... parts) {
  return Status(StatusCode::kInvalidArgument, std::move(id), StrCat(parts...));
}
template <typename... Parts>
Status FailedPrecondition(std::string id, const Parts&... parts) {
  return Status(StatusCode::kFailedPrecondition, std::move(id), StrCat(parts...));
}
template <typename... Parts>
Status Unavailable(std::string id, const Parts&... parts) {
  return Status(StatusCode::kUnavailable, std::move(id), StrCat(parts...));
}
template <typename... Parts>
Status DeadlineExceeded(std::string id, const Parts&... parts) {
  return Status(StatusCode::kDeadlineExceeded, std::move(id), StrCat(parts...));
}
template <typename... Parts>
Status Unimplemented(std::string id, const Parts&... parts) {
  return Status(StatusCode::kUnimplemented, std::move(id), StrCat(parts...));
}
template <typename... Parts>
Status DataLoss(std::string id, const Parts&... parts) {
  return Status(StatusCode::kDataLoss, std::move(id), StrCat(parts...));
}
template <typename... Parts>
Status InternalError(std::string id, const Parts&... parts) {
  return Status(StatusCode::kInternal, std::move(id), StrCat(parts...));
}
template <typename... Parts>
Status Cancelled(std::string id, const Parts&... parts) {
  return Status(StatusCode::kCancelled, std::move(id), StrCat(parts...));
}

// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(T value) : state_(std::in_place_index<1>, std::move(value)) {}
  Result(Status status)  // NOLINT(google-explicit-constructor)
      : state_(std::in_place_index<0>, std::move(status)) {
    PENSTOCK_CHECK(!std::get_if<0>(&state_)->ok(), "a Result without a value needs an error");
  }

  bool ok() const { return state_.index() == 1; }
  const Status& status() const& { return ok() ? Status::SharedOk() : *std::get_if<0>(&state_); }
  Status status() && { return ok() ? OkStatus() : std::move(*std::get_if<0>(&state_)); }

  const T& value() const& {
    if (!ok()) [[unlikely]]
      Status::NoValue(status());
    return *std::get_if<1>(&state_);
  }
  T& value() & {
    if (!ok()) [[unlikely]]
      Status::NoValue(status());
    return *std::get_if<1>(&state_);
  }
  T&& value() && { return std::move(value()); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

 private:
  std::variant<Status, T> state_;
};

}  // namespace penstock

#define PENSTOCK_CONCAT_INNER(a, b) a##b
#define PENSTOCK_CONCAT(a, b) PENSTOCK_CONCAT_INNER(a, b)

#define PENSTOCK_RETURN_IF_ERROR(expr)                 \
  do {                                                 \
    ::penstock::Status penstock_status = (expr);       \
    if (!penstock_status.ok()) return penstock_status; \
  } while (false)

#define PENSTOCK_ASSIGN_OR_RETURN_IMPL(result, lhs, expr) \
  auto result = (expr);                                   \
  if (!result.ok()) return std::move(result).status();    \
  lhs = *std::move(result)

#define PENSTOCK_ASSIGN_OR_RETURN(lhs, expr) \
  PENSTOCK_ASSIGN_OR_RETURN_IMPL(PENSTOCK_CONCAT(penstock_result_, __LINE__), lhs, expr)
