#include "tools/case/case_file.h"

#include <optional>
#include <set>
#include <utility>

#include "tools/case/json_reader.h"
#include "transpiler/plan/settings.h"

namespace penstock {
namespace {

Result<Json> ParseObject(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) return json;
  return InvalidArgument("E-case", "not a JSON object");
}

// nullopt: the value has another type.
std::optional<plan::SettingValue> ValueOf(const plan::Setting& setting, const Json& json) {
  switch (setting.type) {
    case plan::SettingType::kFlag:
      if (json.is_boolean()) return json.get<bool>();
      return std::nullopt;
    case plan::SettingType::kInteger:
      if (setting.bits == 64) return IntegerOf<std::int64_t>(json);
      if (const std::optional<std::int32_t> number = IntegerOf<std::int32_t>(json))
        return std::int64_t{*number};
      return std::nullopt;
    case plan::SettingType::kNumber:
      if (json.is_number()) return json.get<double>();
      return std::nullopt;
    default:
      if (json.is_string()) return json.get<std::string>();
      return std::nullopt;
  }
}

void ReadKind(JsonReader& in, plan::TranspileConfig& config) {
  std::string kind = "pserver";
  in.Read("kind", kind);
  if (kind == "pserver") {
    config.kind = plan::Kind::kPserver;
  } else if (kind == "nccl2") {
    config.kind = plan::Kind::kNccl2;
  } else if (kind == "collective") {
    config.kind = plan::Kind::kCollective;
  } else if (kind == "geo") {
    config.kind = plan::Kind::kGeo;
  } else {
    in.Fail(InvalidArgument("E-case", "key \"kind\": ", Quote(kind),
                            " is none of pserver, nccl2, collective, geo"));
  }
}

// Reads the key of a setting, if it is there.
void ReadSetting(const plan::Setting& setting, JsonReader& in, plan::TranspileConfig& config) {
  const std::string key(setting.key);
  if (setting.key.empty()) return;
  const Json* json = in.Find(setting.key);
  if (json == nullptr) return;
  const std::optional<plan::SettingValue> value = ValueOf(setting, *json);
  if (!value) return in.Fail(WrongType(key, setting.TypeText()));
  if (setting.type == plan::SettingType::kWord) {
    const auto& word = std::get<std::string>(*value);
    if (!setting.HasWord(word)) {
      Status unknown =
          InvalidArgument("E-case", "key ", Quote(key), ": ", Quote(word), " is ", setting.OtherWordText());
      if (!setting.note.empty()) unknown.With(StrCat("note: ", setting.note));
      return in.Fail(std::move(unknown));
    }
  }
  if (Status set = setting.set(config, *value); !set.ok()) in.Fail(std::move(set));
}

// The user's own dispatcher, if split_method names one.
bool ReadDispatcher(JsonReader& in, const Dispatchers& dispatchers, plan::TranspileConfig& config) {
  const Json* method = in.Find("split_method");
  if (method == nullptr || !method->is_string()) return false;
  const auto own = dispatchers.find(method->get<std::string>());
  if (own == dispatchers.end()) return false;
  config.dispatcher = own->second;
  return true;
}

// The argument `trainers` of transpile(): the addresses of ranks, as one string or as a list. An integer is
// the number of trainers in a job with pservers, and gives no addresses.
void ReadTrainersArgument(const Json& argument, JsonReader& in, plan::TranspileConfig& config) {
  if (argument.is_string()) {
    config.trainer_addresses = Split(argument.get<std::string>(), ',');
  } else if (argument.is_number_integer()) {
    config.trainer_addresses.clear();
  } else {
    in.Read("trainers_arg", config.trainer_addresses);
  }
}

// The addresses of all ranks, and the address of each trainer in trainer_ids.
Status ReadRanks(const Json& json, plan::TranspileConfig& config) {
  const bool rings = config.kind == plan::Kind::kNccl2 || config.kind == plan::Kind::kCollective ||
                     config.dense != plan::DenseExchange::kPserver || config.on_uneven != OnUneven::kNone;
  if (!rings) return OkStatus();
  JsonReader in(json);
  in.Read("trainer_endpoints", config.trainer_addresses);
  const std::vector<std::string> known = config.trainer_addresses;
  for (const int id : config.trainer_ids) {
    if (id < 0 || id >= static_cast<int>(known.size())) break;
    config.current_addresses.push_back(known[static_cast<std::size_t>(id)]);
  }
  const Json* job = in.Find("config");
  if (job == nullptr) return in.status();
  JsonReader of_job(*job);
  if (const Json* argument = of_job.Find("trainers_arg")) ReadTrainersArgument(*argument, of_job, config);
  if (of_job.Find("trainers") == nullptr && !config.trainer_addresses.empty()) {
    config.trainers = static_cast<int>(config.trainer_addresses.size());
  }
  return in.status().ok() ? of_job.status() : in.status();
}

Status ReadConfig(const Json& json, const Dispatchers& dispatchers, plan::TranspileConfig& config) {
  JsonReader in(json);
  ReadKind(in, config);
  in.Read("trainers", config.trainers);
  in.Read("trainer_ids", config.trainer_ids);
  const bool dispatches = ReadDispatcher(in, dispatchers, config);
  for (const plan::Setting& setting : plan::Settings()) {
    if (!dispatches || setting.name != "placement") ReadSetting(setting, in, config);
  }
  config.hierarchical = in.Find("hierarchical_inter_nranks") != nullptr;
  in.RefuseMisspelt({"pservers", "trainers_arg"});
  return in.status();
}

// Reads "files": the name on disk of each role file.
Status ReadFiles(const Json& json, std::map<std::string, std::string>& files) {
  if (!json.is_object()) return WrongType("files", "an object");
  for (const auto& [role, entry] : json.items()) {
    std::string name = role;
    if (entry.is_object()) {
      JsonReader in(entry);
      in.Read("file", name);
      PENSTOCK_RETURN_IF_ERROR(in.status());
    }
    // A name must not lead out of the output folder.
    if (name.find('/') != std::string::npos) return WrongType("files", "names without a folder");
    files[role] = name;
  }
  return OkStatus();
}

struct ParamFacts {
  std::string name;
  VarFacts facts;
};

// Moves the parameters behind the other variables, in order of creation: Fluid's programs list variables in
// hash-map order.
void ApplyToVars(const std::vector<ParamFacts>& params, Program& program) {
  std::vector<Var> changed;
  std::set<std::string, std::less<>> names;
  for (const ParamFacts& param : params) {
    const Var* var = program.main().FindVar(param.name);
    if (var == nullptr || !names.insert(param.name).second) continue;
    changed.push_back(*var);
    changed.back().facts.is_parameter = true;
    changed.back().facts.trainable = param.facts.trainable;
    changed.back().facts.is_distributed = param.facts.is_distributed;
    changed.back().facts.learning_rate = param.facts.learning_rate;
  }
  Block& block = program.MutableBlock(0);
  block.RemoveVars(names);
  for (Var& var : changed) block.SetVar(std::move(var));
}

}  // namespace

const std::string& CaseFile::FileOf(const std::string& role) const {
  const auto it = files.find(role);
  return it == files.end() ? role : it->second;
}

Result<CaseFile> ParseCase(std::string_view text, const Dispatchers& dispatchers, const Override& override) {
  PENSTOCK_ASSIGN_OR_RETURN(const Json json, ParseObject(text));
  CaseFile out;
  JsonReader in(json);
  in.Read("program", out.program);
  in.Read("pserver_endpoints", out.config.pservers);
  PENSTOCK_RETURN_IF_ERROR(in.status());
  if (const Json* config = in.Find("config")) {
    if (!config->is_object()) return WrongType("config", "an object");
    PENSTOCK_RETURN_IF_ERROR(ReadConfig(*config, dispatchers, out.config));
  }
  if (override) PENSTOCK_RETURN_IF_ERROR(override(out.config));
  PENSTOCK_RETURN_IF_ERROR(ReadRanks(json, out.config));
  if (const Json* files = in.Find("files")) PENSTOCK_RETURN_IF_ERROR(ReadFiles(*files, out.files));
  const Json* errors = in.Find("expected_errors");
  out.expects_errors = errors != nullptr && !errors->empty();
  in.RefuseMisspelt({"trainer_endpoints"});
  if (!in.status().ok()) return in.status();
  return out;
}

Status ApplyFacts(std::string_view text, Program& main, Program& startup) {
  PENSTOCK_ASSIGN_OR_RETURN(const Json json, ParseObject(text));
  JsonReader in(json);
  std::int64_t seed = 0;
  in.Read("random_seed", seed);
  PENSTOCK_RETURN_IF_ERROR(in.status());
  main.mutable_meta().random_seed = seed;
  startup.mutable_meta().random_seed = seed;
  std::vector<std::string> feeds;
  in.Read("feeds", feeds);
  PENSTOCK_RETURN_IF_ERROR(in.status());
  for (const std::string& name : feeds) {
    const Var* var = main.main().FindVar(name);
    if (var == nullptr || var->facts.is_data) continue;
    Var fed = *var;
    fed.facts.is_data = true;
    main.MutableBlock(0).SetVar(std::move(fed));
  }
  const Json* params = in.Find("params");
  if (params == nullptr) return OkStatus();
  if (!params->is_array()) return WrongType("params", "a list of objects");
  std::vector<ParamFacts> known;
  for (const Json& entry : *params) {
    if (!entry.is_object()) return WrongType("params", "a list of objects");
    JsonReader in_entry(entry);
    ParamFacts& param = known.emplace_back();
    in_entry.Read("name", param.name);
    in_entry.Read("trainable", param.facts.trainable);
    in_entry.Read("is_distributed", param.facts.is_distributed);
    in_entry.Read("learning_rate", param.facts.learning_rate);
    PENSTOCK_RETURN_IF_ERROR(in_entry.status());
  }
  ApplyToVars(known, main);
  ApplyToVars(known, startup);
  return OkStatus();
}

}  // namespace penstock
