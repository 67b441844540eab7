#include "executor/pserver/machine/keys.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "framework/base/strings.h"
#include "framework/tensor/dtype.h"

namespace penstock::pserver {
namespace {

std::string TypeText(const protocol::KeyBody& body) {
  std::string text(body.rows ? "rows<" : "");
  text += StrCat(DTypeName(static_cast<DType>(body.dtype)), "[");
  for (std::size_t i = 0; i < body.shape.size(); ++i) text += StrCat(i > 0 ? ", " : "", body.shape[i]);
  text += StrCat("]", body.rows ? ">" : "", body.turns ? ", asynchronous" : "", body.whole ? ", whole" : "");
  if (!body.table.empty()) text += StrCat(", a table: ", body.table);
  return text;
}

}  // namespace

int Keys::Find(const protocol::KeyBody& body) const {
  const auto found = keys_.find(NameOf(body));
  return found == keys_.end() ? -1 : found->second.param;
}

Status Keys::Check(const protocol::KeyBody& body) {
  const auto refuse = [&](const std::string& why) {
    return InvalidArgument("E-kv-key-type", "key ", Quote(body.name), " ", why);
  };
  if (!IsDType(static_cast<int>(body.dtype)) || static_cast<DType>(body.dtype) == DType::kBool ||
      static_cast<DType>(body.dtype) == DType::kFp16)
    return refuse(StrCat("has an element type that servers do not keep: ", body.dtype));
  if (body.shape.empty()) return refuse("has no extent");
  if (!body.table.empty() && (!body.rows || body.shape.size() != 2 || body.shape[0] != 1))
    return refuse("is a table of any ids, and not of shape [1, width]");
  std::int64_t left = std::numeric_limits<std::int64_t>::max() / 16;
  for (const std::int64_t extent : body.shape) {
    if (extent < 1 || extent > left) return refuse(StrCat("has an extent of ", extent));
    left /= extent;
  }
  return OkStatus();
}

Status Keys::CheckSame(const protocol::KeyBody& body) const {
  const protocol::KeyBody& known = keys_.find(NameOf(body))->second.body;
  const auto facts = [](const protocol::KeyBody& key) {
    return std::tie(key.dtype, key.shape, key.rows, key.turns, key.whole, key.table);
  };
  if (facts(known) == facts(body)) return OkStatus();
  return InvalidArgument("E-kv-differs", "key ", Quote(body.name), " is ", TypeText(body),
                         " here, and another worker has declared it as ", TypeText(known))
      .With("all workers declare a key with the same type, shape and kind of store");
}

bool Keys::LeaveKey(const protocol::KeyBody& body, int worker) {
  const auto found = keys_.find(NameOf(body));
  if (found == keys_.end()) return false;
  left_.insert(found->second.param);
  return found->second.left_by.insert(worker).second && found->second.left_by.size() == at_.size();
}

void Keys::Enter(int worker, std::uint64_t number) {
  Place& place = at_[static_cast<std::size_t>(worker)];
  place.entered = std::max(place.entered, number);
  place.waits = true;
}

std::vector<int> Keys::Leave(const std::function<bool(int)>& gone) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t w = 0; w < at_.size(); ++w) {
    if (!gone(static_cast<int>(w))) least = std::min(least, at_[w].entered);
  }
  if (least != std::numeric_limits<std::uint64_t>::max()) passed_ = std::max(passed_, least);
  std::vector<int> passed;
  for (std::size_t w = 0; w < at_.size(); ++w) {
    if (!at_[w].waits || at_[w].entered > passed_) continue;
    at_[w].waits = false;
    passed.push_back(static_cast<int>(w));
  }
  return passed;
}

std::vector<int> Keys::Lacks(const std::function<bool(int)>& gone) const {
  std::uint64_t most = 0;
  for (const Place& place : at_) {
    if (place.waits) most = std::max(most, place.entered);
  }
  std::vector<int> lacking;
  for (std::size_t w = 0; w < at_.size(); ++w) {
    if (at_[w].entered < most && !gone(static_cast<int>(w))) lacking.push_back(static_cast<int>(w));
  }
  return lacking;
}

void Keys::AddSetting(std::uint64_t call, Setting setting) {
  if (call > settings_.size()) settings_.resize(call);
  settings_[call - 1] = std::move(setting);
}

}  // namespace penstock::pserver
