#include "framework/base/status.h"

namespace penstock {

struct Status::Error {
  StatusCode code;
  std::string id;
  std::string message;
  std::vector<std::string> details;
};

void Status::Delete::operator()(Error* error) const { delete error; }

Status::ErrorPtr Status::Copy(const Error& error) { return ErrorPtr(new Error(error)); }

Status::Status(StatusCode code, std::string id, std::string message) {
  if (code == StatusCode::kOk) return;
  error_.reset(new Error{code, std::move(id), std::move(message), {}});
}

StatusCode Status::code() const { return ok() ? StatusCode::kOk : error_->code; }

const std::string& Status::id() const {
  static const std::string none;
  return ok() ? none : error_->id;
}

const std::string& Status::message() const {
  static const std::string none;
  return ok() ? none : error_->message;
}

const std::vector<std::string>& Status::details() const {
  static const std::vector<std::string> none;
  return ok() ? none : error_->details;
}

Status& Status::With(std::string line) & {
  if (!ok()) error_->details.push_back(std::move(line));
  return *this;
}

Status&& Status::In(std::string_view what) && {
  if (!ok()) error_->message = StrCat(what, ": ", error_->message);
  return std::move(*this);
}

std::string Status::ToString() const {
  if (ok()) return "ok";
  std::string out = error_->message;
  if (!error_->id.empty()) out += StrCat("   [", error_->id, "]");
  for (const std::string& line : error_->details) out += StrCat("\n  ", line);
  return out;
}

const Status& Status::SharedOk() {
  static const Status ok;
  return ok;
}

void Status::NoValue(const Status& why) { CheckFailed(__FILE__, __LINE__, "ok()", why.ToString()); }

}  // namespace penstock
