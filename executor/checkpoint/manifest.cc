#include "executor/checkpoint/manifest.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/base/crc32c.h"

namespace penstock::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

// Format 2 has files with rows, each step's in one record by ascending id; format 3 has them in portions.
constexpr int kFormat = 1, kFormatOfRows = 3;
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

Json ToJson(const Record& record) {
  Json json = {
      {"file", record.file}, {"offset", record.offset}, {"bytes", record.bytes}, {kChecksum, record.crc32c}};
  if (record.gone) json["gone"] = true;
  return json;
}

Json ToJson(const ValueEntry& value) {
  Json json = {{"name", value.name}, {"kind", KindName(value.kind)}};
  if (!value.of.empty()) json["of"] = value.of;
  if (!value.whole.empty()) json["whole"] = value.whole;
  if (value.row_begin) json["row_begin"] = *value.row_begin;
  if (value.rows) json["rows"] = true;
  json["type"] = value.type;
  for (const Record& record : value.records) json["records"].push_back(ToJson(record));
  if (!value.records.empty()) return json;
  json["offset"] = value.offset;
  json["bytes"] = value.bytes;
  json[kChecksum] = value.crc32c;
  return json;
}

Json ToJson(const KeyEntry& key) {
  return {{"name", key.name},     {"type", key.type},           {"begin", key.begin},
          {"rows", key.rows},     {"whole", key.whole},         {"moved", key.moved},
          {"rounds", key.rounds}, {"optimizer", key.optimizer}, {"since", key.since}};
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

const char* ReadRecord(const Json& json, Record& record) {
  if (!json.is_object()) return "records";
  Keys keys(json);
  keys.Read("file", record.file);
  keys.Read("offset", record.offset);
  keys.Read("bytes", record.bytes);
  keys.Read(kChecksum, record.crc32c);
  if (keys.Find("gone") != nullptr) keys.Read("gone", record.gone);
  return keys.wrong();
}

const char* ReadRecords(const Json& json, std::vector<Record>& records) {
  if (!json.is_array() || json.empty()) return "records";
  for (const Json& record : json) {
    if (const char* wrong = ReadRecord(record, records.emplace_back()); wrong != nullptr) return wrong;
  }
  return nullptr;
}

const char* ReadFile(const Json& json, RowsFile& file) {
  if (!json.is_object()) return "files";
  Keys keys(json);
  keys.Read("name", file.name);
  keys.Read("bytes", file.bytes);
  // It is a file in the folder of the step.
  if (file.name.find('/') != std::string::npos || !file.name.starts_with("part-")) keys.Fail("name");
  return keys.wrong();
}

const char* ReadKey(const Json& json, KeyEntry& key) {
  if (!json.is_object()) return "keys";
  Keys keys(json);
  keys.Read("name", key.name);
  keys.Read("type", key.type);
  keys.Read("begin", key.begin);
  keys.Read("rows", key.rows);
  keys.Read("whole", key.whole);
  keys.Read("moved", key.moved);
  keys.Read("rounds", key.rounds);
  keys.Read("optimizer", key.optimizer);
  keys.Read("since", key.since);
  if (key.since > key.rounds) keys.Fail("since");
  return keys.wrong();
}

// What a part of a server of keys says of them, or nothing.
void ReadKeys(Keys& keys, Manifest& manifest) {
  const Json* const found = keys.Find("keys");
  if (found == nullptr) return;
  const Json* const optimizers = keys.Find("optimizers");
  if (!found->is_array()) return keys.Fail("keys");
  const auto is_text = [](const Json& one) { return one.is_string(); };
  if (optimizers == nullptr || !optimizers->is_array() || !std::ranges::all_of(*optimizers, is_text))
    return keys.Fail("optimizers");
  manifest.optimizers = optimizers->get<std::vector<std::string>>();
  manifest.keys.emplace();
  for (const Json& one : *found) {
    KeyEntry& key = manifest.keys->emplace_back();
    if (ReadKey(one, key) != nullptr) return keys.Fail("keys");
    const auto count = static_cast<std::int64_t>(manifest.optimizers.size());
    if (key.optimizer < -1 || key.optimizer >= count) return keys.Fail("optimizer");
  }
}

bool IsNumbers(const Json& json) {
  return json.is_array() &&
         std::ranges::all_of(json, [](const Json& one) { return one.is_number_unsigned(); });
}

// What a part says of each trainer, or nothing.
void ReadByTrainer(Keys& keys, Manifest& manifest) {
  const auto trainers = static_cast<std::size_t>(std::max(manifest.trainers, 0));
  const auto read = [&](const char* key, std::vector<std::uint64_t>& to) {
    const Json* const found = keys.Find(key);
    if (found == nullptr) return;
    if (!IsNumbers(*found) || found->size() != trainers) return keys.Fail(key);
    to = found->get<std::vector<std::uint64_t>>();
  };
  read("steps_in", manifest.steps_in);
  read("began_at", manifest.began_at);
  read("ahead", manifest.ahead);
  const Json* const counted = keys.Find("counted");
  if (counted == nullptr) return;
  const auto is_ranges = [](const Json& one) { return IsNumbers(one) && one.size() % 2 == 0; };
  if (!counted->is_array() || counted->size() != trainers || !std::ranges::all_of(*counted, is_ranges))
    return keys.Fail("counted");
  manifest.counted = counted->get<std::vector<std::vector<std::uint64_t>>>();
}

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
  if (const Json* records = keys.Find("records"); records != nullptr) {
    if (const char* wrong = ReadRecords(*records, value.records); wrong != nullptr) return wrong;
    if (!value.rows) return "records";
  } else {
    keys.Read("offset", value.offset);
    keys.Read("bytes", value.bytes);
    keys.Read(kChecksum, value.crc32c);
  }
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

// Whether the values lie one after the other and fill their files.
bool FillFiles(const Manifest& manifest) {
  struct File {
    std::uint64_t bytes = 0;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> filled = {};  // offset, bytes
  };
  std::map<std::string_view, File> files = {{"", {.bytes = manifest.bytes}}};
  for (const RowsFile& file : manifest.files) {
    if (!files.try_emplace(file.name, File{.bytes = file.bytes}).second) return false;
  }
  for (const ValueEntry& value : manifest.values) {
    if (value.records.empty()) files[""].filled.emplace_back(value.offset, value.bytes);
    for (const Record& record : value.records) {
      const auto found = files.find(record.file);
      if (record.file.empty() || found == files.end()) return false;
      found->second.filled.emplace_back(record.offset, record.bytes);
    }
  }
  return std::ranges::all_of(files, [](auto& named) {
    File& file = named.second;
    std::ranges::sort(file.filled);
    std::uint64_t at = 0;
    for (const auto& [offset, bytes] : file.filled) {
      if (offset != at || bytes > file.bytes - at) return false;
      at += bytes;
    }
    return at == file.bytes;
  });
}

}  // namespace

std::string_view KindName(ValueKind kind) {
  for (const auto& [one, name] : kKinds) {
    if (one == kind) return name;
  }
  return {};
}

std::uint64_t Manifest::all_bytes() const {
  std::uint64_t all = bytes;
  for (const RowsFile& file : files) all += file.bytes;
  return all;
}

std::string WriteManifest(const Manifest& manifest) {
  Json json = {{"format", manifest.files.empty() ? kFormat : kFormatOfRows},
               {"step", manifest.step},
               {"server", manifest.server},
               {"servers", manifest.servers},
               {"trainers", manifest.trainers},
               {"run", manifest.run},
               {"plan", Hex(manifest.plan)}};
  if (manifest.last_ms > 0) json["last_ms"] = manifest.last_ms;
  if (!manifest.steps_in.empty()) json["steps_in"] = manifest.steps_in;
  if (!manifest.began_at.empty()) json["began_at"] = manifest.began_at;
  if (!manifest.ahead.empty()) json["ahead"] = manifest.ahead;
  if (!manifest.counted.empty()) json["counted"] = manifest.counted;
  if (manifest.keys) {
    json["optimizers"] = manifest.optimizers;
    json["keys"] = Json::array();
    for (const KeyEntry& key : *manifest.keys) json["keys"].push_back(ToJson(key));
  }
  if (manifest.with_trainers) json["with_trainers"] = true;
  if (manifest.of_trainer) {
    json["exchanges"] = manifest.of_trainer->exchanges;
    json["local_steps"] = manifest.of_trainer->steps;
  }
  json["bytes"] = manifest.bytes;
  for (const RowsFile& file : manifest.files)
    json["files"].push_back(Json{{"name", file.name}, {"bytes", file.bytes}});
  json["values"] = Json::array();
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
  if (keys.wrong() == nullptr && (format < kFormat || format > kFormatOfRows)) {
    return Wrong(StrCat("format ", format, "; this version reads formats ", kFormat, " to ", kFormatOfRows));
  }
  std::uint32_t checksum = 0;
  std::string plan;
  keys.Read("step", manifest.step);
  keys.Read("server", manifest.server);
  keys.Read("servers", manifest.servers);
  keys.Read("trainers", manifest.trainers);
  keys.Read("run", manifest.run);
  keys.Read("plan", plan);
  if (keys.Find("last_ms") != nullptr) keys.Read("last_ms", manifest.last_ms);
  ReadByTrainer(keys, manifest);
  ReadKeys(keys, manifest);
  if (keys.Find("with_trainers") != nullptr) keys.Read("with_trainers", manifest.with_trainers);
  if (keys.Find("exchanges") != nullptr) {
    Manifest::Own& own = manifest.of_trainer.emplace();
    keys.Read("exchanges", own.exchanges);
    keys.Read("local_steps", own.steps);
  }
  keys.Read("bytes", manifest.bytes);
  keys.Read(kChecksum, checksum);
  const Json* files = keys.Find("files");
  for (const Json& file : files == nullptr ? Json::array() : *files) {
    if (const char* wrong = ReadFile(file, manifest.files.emplace_back()); wrong != nullptr) keys.Fail(wrong);
  }
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
  if (!FillFiles(manifest)) return Wrong("its values do not fill its file");
  return manifest;
}

}  // namespace penstock::checkpoint
