// Reads the keys of one JSON object; the type of the variable is the type that the value must have.
//
//   JsonReader in(object);
//   in.Read("trainers", config.trainers);   // unchanged if the key is absent or null
//   PENSTOCK_RETURN_IF_ERROR(in.status());  // E-case names the first key of a wrong type
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/near_names.h"
#include "framework/base/status.h"

namespace penstock {

using Json = nlohmann::json;

inline Status WrongType(std::string_view key, std::string_view expected) {
  return InvalidArgument("E-case", "key ", Quote(key), " must be ", expected);
}

// The value if it is an integer in the range of Int; JSON numbers have no bounds.
template <typename Int>
std::optional<Int> IntegerOf(const Json& json) {
  if (json.is_number_unsigned()) {
    const auto value = json.get<std::uint64_t>();
    return std::in_range<Int>(value) ? std::optional(static_cast<Int>(value)) : std::nullopt;
  }
  if (!json.is_number_integer()) return std::nullopt;
  const auto value = json.get<std::int64_t>();
  return std::in_range<Int>(value) ? std::optional(static_cast<Int>(value)) : std::nullopt;
}

// Reads keys of one object. A key that is absent or null leaves the variable unchanged; status() keeps the
// first error.
class JsonReader {
 public:
  explicit JsonReader(const Json& object) : object_(object) {}

  void Read(const char* key, bool& value) {
    const Json* found = Find(key);
    if (found == nullptr) return;
    if (!found->is_boolean()) return Fail(WrongType(key, "true or false"));
    value = found->get<bool>();
  }
  void Read(const char* key, std::optional<bool>& value) {
    bool read = false;
    if (Find(key) == nullptr) return;
    Read(key, read);
    value = read;
  }
  void Read(const char* key, std::optional<int>& value) {
    int read = 0;
    if (Find(key) == nullptr) return;
    Read(key, read);
    value = read;
  }
  void Read(const char* key, std::int64_t& value) { ReadInteger(key, "an integer", value); }
  void Read(const char* key, int& value) { ReadInteger(key, "an integer of 32 bits", value); }
  void Read(const char* key, float& value) { ReadNumber(key, value); }
  void Read(const char* key, double& value) { ReadNumber(key, value); }
  void Read(const char* key, std::string& value) {
    const Json* found = Find(key);
    if (found == nullptr) return;
    if (!found->is_string()) return Fail(WrongType(key, "a text"));
    value = found->get<std::string>();
  }
  void Read(const char* key, std::vector<std::string>& values) {
    const Json* found = Find(key);
    if (found == nullptr) return;
    if (!found->is_array()) return Fail(WrongType(key, "a list of texts"));
    values.clear();
    for (const Json& element : *found) {
      if (!element.is_string()) return Fail(WrongType(key, "a list of texts"));
      values.push_back(element.get<std::string>());
    }
  }
  void Read(const char* key, std::vector<int>& values) {
    const Json* found = Find(key);
    if (found == nullptr) return;
    if (!found->is_array()) return Fail(WrongType(key, "a list of integers of 32 bits"));
    values.clear();
    for (const Json& element : *found) {
      const std::optional<int> value = IntegerOf<int>(element);
      if (!value) return Fail(WrongType(key, "a list of integers of 32 bits"));
      values.push_back(*value);
    }
  }
  const Json* Find(std::string_view key) {
    asked_.push_back(key);
    const auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  void Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  const Status& status() const { return status_; }
  // Fails on a key that was not read and resembles one that was, because it is probably misspelt. Other
  // unread keys are allowed.
  void RefuseMisspelt(std::vector<std::string_view> others) {
    others.insert(others.end(), asked_.begin(), asked_.end());
    for (const auto& [key, value] : object_.items()) {
      if (std::find(others.begin(), others.end(), key) != others.end()) continue;
      const std::vector<std::string_view> near = NearNames(key, asked_);
      if (near.empty() || 3 * EditDistance(key, near.front()) > key.size()) continue;
      return Fail(InvalidArgument("E-case", "key ", Quote(key), " is not known")
                      .With(StrCat("note: known keys with a similar name: ", Join(near, ", "))));
    }
  }

 private:
  template <typename Int>
  void ReadInteger(const char* key, std::string_view expected, Int& value) {
    const Json* found = Find(key);
    if (found == nullptr) return;
    const std::optional<Int> read = IntegerOf<Int>(*found);
    if (!read) return Fail(WrongType(key, expected));
    value = *read;
  }

  template <typename Float>
  void ReadNumber(const char* key, Float& value) {
    const Json* found = Find(key);
    if (found == nullptr) return;
    if (!found->is_number()) return Fail(WrongType(key, "a number"));
    value = found->get<Float>();
  }

  const Json& object_;
  std::vector<std::string_view> asked_;  // literals
  Status status_;
};

}  // namespace penstock
