#include "executor/checkpoint/manifest.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/base/crc32c.h"

namespace penstock::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr char kChecksum[] = "crc32c";
constexpr std::array<std::pair<ValueKind, std::string_view>, 6> kKinds = {{{ValueKind::kParam, "param"},
                                                                           {ValueKind::kState, "state"},
                                                                           {ValueKind::kConstant, "constant"},
                                                                           {ValueKind::kSchedule, "schedule"},
                                                                           {ValueKind::kHistory, "history"},
                                                                           {ValueKind::kPolicy, "policy"}}};

std::string Hex(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

Json ToJson(const ValueEntry& value) {
  Json json = {{"name", value.name}, {"kind", KindName(value.kind)}};
  if (!value.of.empty()) json["of"] = value.of;
  if (!value.whole.empty()) json["whole"] = value.whole;
  if (value.row_begin) json["row_begin"] = *value.row_begin;
  if (value.rows) json["rows"] = true;
  json["type"] = value.type;
  json["offset"] = value.offset;
  json["bytes"] = value.bytes;
  json[kChecksum] = value.crc32c;
  return json;
}

std::uint32_t ChecksumOf(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return Crc32c(0, text.data(), text.size());
}

// Reads the keys of one object; the first one that is missing or of another type is the error.
class Keys {
 public:
  explicit Keys(const Json& object) : object_(object) {}

  template <typename T>
  void Read(const char* key, T& value) {
    const Json* found = Find(key);
    if (found == nullptr || !Fits<T>(*found)) return Fail(key);
    value = found->get<T>();
  }
  void Fail(const char* key) {
    if (wrong_ == nullptr) wrong_ = key;
  }
  const Json* Find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  const char* wrong() const { return wrong_; }

 private:
  template <typename T>
  static bool Fits(const Json& json) {
    if constexpr (std::is_same_v<T, std::string>) {
      return json.is_string();
    } else if constexpr (std::is_same_v<T, bool>) {
      return json.is_boolean();
    } else if constexpr (std::is_unsigned_v<T>) {
      return json.is_number_unsigned() && std::in_range<T>(json.get<std::uint64_t>());
    } else {
      return json.is_number_integer() && std::in_range<T>(json.get<std::int64_t>());
    }
  }

  const Json& object_;
  const char* wrong_ = nullptr;
};

const char* ReadValue(const Json& json, ValueEntry& value) {
  Keys keys(json);
  std::string kind;
  keys.Read("name", value.name);
  keys.Read("kind", kind);
  if (keys.Find("of") != nullptr) keys.Read("of", value.of);
  if (keys.Find("whole") != nullptr) keys.Read("whole", value.whole);
  if (keys.Find("row_begin") != nullptr) keys.Read("row_begin", value.row_begin.emplace());
  if (keys.Find("rows") != nullptr) keys.Read("rows", value.rows);
  keys.Read("type", value.type);
  keys.Read("offset", value.offset);
  keys.Read("bytes", value.bytes);
  keys.Read(kChecksum, value.crc32c);
  bool known = false;
  for (const auto& [one, name] : kKinds) {
    if (name != kind) continue;
    value.kind = one;
    known = true;
  }
  if (!known) keys.Fail("kind");
  return keys.wrong();
}

Status Wrong(std::string_view what) { return DataLoss("E-checkpoint-manifest", "not a manifest: ", what); }

// Whether the values lie one after the other and fill the file.
bool FillsFile(const Manifest& manifest) {
  std::uint64_t at = 0;
  for (const ValueEntry& value : manifest.values) {
    if (value.offset != at || value.bytes > manifest.bytes - at) return false;
    at += value.bytes;
  }
  return at == manifest.bytes;
}

}  // namespace

std::string_view KindName(ValueKind kind) {
  for (const auto& [one, name] : kKinds) {
    if (one == kind) return name;
  }
  return {};
}

std::string WriteManifest(const Manifest& manifest) {
  Json json = {{"format", kFormat},           {"step", manifest.step},         {"server", manifest.server},
               {"servers", manifest.servers}, {"trainers", manifest.trainers}, {"run", manifest.run},
               {"plan", Hex(manifest.plan)},  {"bytes", manifest.bytes},       {"values", Json::array()}};
  for (const ValueEntry& value : manifest.values) json["values"].push_back(ToJson(value));
  json[kChecksum] = ChecksumOf(json);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Manifest> ReadManifest(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Wrong("no JSON object");
  Manifest manifest;
  Keys keys(json);
  int format = 0;
  keys.Read("format", format);
  if (keys.wrong() == nullptr && format != kFormat)
    return Wrong(StrCat("format ", format, "; this version reads format ", kFormat));
  std::uint32_t checksum = 0;
  std::string plan;
  keys.Read("step", manifest.step);
  keys.Read("server", manifest.server);
  keys.Read("servers", manifest.servers);
  keys.Read("trainers", manifest.trainers);
  keys.Read("run", manifest.run);
  keys.Read("plan", plan);
  keys.Read("bytes", manifest.bytes);
  keys.Read(kChecksum, checksum);
  const Json* values = keys.Find("values");
  if (values == nullptr || !values->is_array()) keys.Fail("values");
  if (keys.wrong() != nullptr) return Wrong(StrCat("its ", Quote(keys.wrong()), " is missing or wrong"));
  if (std::sscanf(plan.c_str(), "%16lx", &manifest.plan) != 1) return Wrong("its \"plan\" is wrong");
  for (const Json& value : *values) {
    const char* wrong = value.is_object() ? ReadValue(value, manifest.values.emplace_back()) : "values";
    if (wrong != nullptr)
      return Wrong(StrCat("value ", manifest.values.size(), ": its ", Quote(wrong), " is missing or wrong"));
  }
  json.erase(kChecksum);
  if (ChecksumOf(json) != checksum) return Wrong("its checksum does not match");
  if (!FillsFile(manifest)) return Wrong("its values do not fill its file");
  return manifest;
}

}  // namespace penstock::checkpoint
