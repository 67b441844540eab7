#include "tools/case/case_file.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

namespace penstock {
namespace {

using Json = nlohmann::json;

Status WrongType(std::string_view key, std::string_view expected) {
  return InvalidArgument("E-case", "key ", Quote(key), " must be ", expected);
}

// Reads keys of one object. A key that is absent or null leaves the value as it is; the first wrong one is
// remembered.
class Reader {
 public:
  explicit Reader(const Json& object) : object_(object) {}

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
  void Read(const char* key, std::int64_t& value) {
    const Json* found = Find(key);
    if (found == nullptr) return;
    if (!found->is_number_integer()) return Fail(WrongType(key, "an integer"));
    value = found->get<std::int64_t>();
  }
  void Read(const char* key, int& value) {
    std::int64_t read = value;
    Read(key, read);
    if (read < INT32_MIN || read > INT32_MAX) return Fail(WrongType(key, "an integer of 32 bits"));
    value = static_cast<int>(read);
  }
  void Read(const char* key, float& value) {
    const Json* found = Find(key);
    if (found == nullptr) return;
    if (!found->is_number()) return Fail(WrongType(key, "a number"));
    value = found->get<float>();
  }
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
    if (!found->is_array()) return Fail(WrongType(key, "a list of integers"));
    values.clear();
    for (const Json& element : *found) {
      if (!element.is_number_integer()) return Fail(WrongType(key, "a list of integers"));
      values.push_back(element.get<int>());
    }
  }
  const Json* Find(const char* key) const {
    const auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  void Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  const Status& status() const { return status_; }

 private:
  const Json& object_;
  Status status_;
};

Result<Json> ParseObject(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) return json;
  return InvalidArgument("E-case", "not a JSON object");
}

void ReadKind(Reader& in, TranspileConfig& config) {
  std::string kind = "pserver";
  in.Read("kind", kind);
  if (kind == "pserver") {
    config.kind = Kind::kPserver;
  } else if (kind == "nccl2") {
    config.kind = Kind::kNccl2;
  } else if (kind == "collective") {
    config.kind = Kind::kCollective;
  } else if (kind == "geo") {
    config.kind = Kind::kGeo;
  } else {
    in.Fail(InvalidArgument("E-case", "key \"kind\": ", Quote(kind),
                            " is none of pserver, nccl2, collective, geo"));
  }
}

void ReadPlacement(Reader& in, const Dispatchers& dispatchers, TranspileConfig& config) {
  std::string method(PlacementName(config.placement));
  in.Read("split_method", method);
  const auto own = dispatchers.find(method);
  if (own != dispatchers.end()) {
    config.dispatcher = own->second;
  } else if (const std::optional<Placement> placement = PlacementFromName(method)) {
    config.placement = *placement;
  } else {
    in.Fail(
        InvalidArgument("E-case", "key \"split_method\": ", Quote(method), " is none of ", PlacementNames())
            .With("note: a dispatcher of your own is code: give it to transpile() in Python or C++"));
  }
  std::string slicing(SlicingName(config.slicing));
  in.Read("slicing", slicing);
  if (const std::optional<Slicing> known = SlicingFromName(slicing)) {
    config.slicing = *known;
  } else {
    in.Fail(InvalidArgument("E-case", "key \"slicing\": ", Quote(slicing), " is none of ", SlicingNames()));
  }
}

void ReadCollective(Reader& in, TranspileConfig& config) {
  std::string mode;
  in.Read("collective_mode", mode);
  if (mode.empty()) return;
  if (mode == "grad_allreduce") {
    config.collective = Collective::kGradAllreduce;
  } else if (mode == "local_sgd") {
    config.collective = Collective::kLocalSgd;
  } else if (mode == "single_process_multi_thread") {
    config.collective = Collective::kSingleProcessMultiThread;
  } else {
    in.Fail(InvalidArgument("E-case", "key \"collective_mode\": ", Quote(mode),
                            " is none of grad_allreduce, local_sgd, single_process_multi_thread"));
  }
}

Status ReadConfig(const Json& json, const Dispatchers& dispatchers, TranspileConfig& config) {
  Reader in(json);
  ReadKind(in, config);
  ReadCollective(in, config);
  ReadPlacement(in, dispatchers, config);
  in.Read("trainers", config.trainers);
  in.Read("trainer_ids", config.trainer_ids);
  in.Read("slice_var_up", config.slice_params);
  in.Read("min_block_size", config.min_block_size);
  in.Read("min_block_size_after_ctor", config.allow_small_blocks);
  in.Read("big_array_bound", config.big_array_bound);
  in.Read("sync_mode", config.sync_mode_argument);
  in.Read("config_sync_mode", config.sync_mode_field);
  in.Read("runtime_split_send_recv", config.runtime_split_send_recv);
  in.Read("half_async", config.half_async);
  in.Read("completely_not_async", config.completely_not_async);
  in.Read("enable_dc_asgd", config.dc_asgd);
  in.Read("dc_asgd_lambda", config.dc_asgd_lambda);
  in.Read("shared_transpiler", config.shared_transpiler);
  return in.status();
}

// The role files of a case, each with its name on disk.
Status ReadFiles(const Json& json, std::map<std::string, std::string>& files) {
  if (!json.is_object()) return WrongType("files", "an object");
  for (const auto& [role, entry] : json.items()) {
    std::string name = role;
    if (entry.is_object()) {
      Reader in(entry);
      in.Read("file", name);
      PENSTOCK_RETURN_IF_ERROR(in.status());
    }
    // A name that leaves the output folder is not ours to follow.
    if (name.find('/') != std::string::npos) return WrongType("files", "names without a folder");
    files[role] = name;
  }
  return OkStatus();
}

void ApplyToVar(const std::string& name, const VarFacts& facts, Program& program) {
  const Var* var = program.main().FindVar(name);
  if (var == nullptr) return;
  Var changed = *var;
  changed.facts.is_parameter = true;
  changed.facts.trainable = facts.trainable;
  changed.facts.is_distributed = facts.is_distributed;
  changed.facts.learning_rate = facts.learning_rate;
  program.MutableBlock(0).SetVar(std::move(changed));
}

}  // namespace

const std::string& CaseFile::FileOf(const std::string& role) const {
  const auto it = files.find(role);
  return it == files.end() ? role : it->second;
}

Result<CaseFile> ParseCase(std::string_view text, const Dispatchers& dispatchers) {
  PENSTOCK_ASSIGN_OR_RETURN(const Json json, ParseObject(text));
  CaseFile out;
  Reader in(json);
  in.Read("program", out.program);
  in.Read("pserver_endpoints", out.config.pservers);
  PENSTOCK_RETURN_IF_ERROR(in.status());
  if (const Json* config = in.Find("config")) {
    if (!config->is_object()) return WrongType("config", "an object");
    PENSTOCK_RETURN_IF_ERROR(ReadConfig(*config, dispatchers, out.config));
  }
  if (const Json* files = in.Find("files")) PENSTOCK_RETURN_IF_ERROR(ReadFiles(*files, out.files));
  const Json* errors = in.Find("expected_errors");
  out.expects_errors = errors != nullptr && !errors->empty();
  return out;
}

Status ApplyFacts(std::string_view text, Program& main, Program& startup) {
  PENSTOCK_ASSIGN_OR_RETURN(const Json json, ParseObject(text));
  Reader in(json);
  std::int64_t seed = 0;
  in.Read("random_seed", seed);
  PENSTOCK_RETURN_IF_ERROR(in.status());
  main.mutable_meta().random_seed = seed;
  startup.mutable_meta().random_seed = seed;
  const Json* params = in.Find("params");
  if (params == nullptr) return OkStatus();
  if (!params->is_array()) return WrongType("params", "a list of objects");
  for (const Json& entry : *params) {
    if (!entry.is_object()) return WrongType("params", "a list of objects");
    Reader param(entry);
    std::string name;
    VarFacts facts;
    param.Read("name", name);
    param.Read("trainable", facts.trainable);
    param.Read("is_distributed", facts.is_distributed);
    param.Read("learning_rate", facts.learning_rate);
    PENSTOCK_RETURN_IF_ERROR(param.status());
    ApplyToVar(name, facts, main);
    ApplyToVar(name, facts, startup);
  }
  return OkStatus();
}

}  // namespace penstock
