#include "tools/case/case_file.h"

#include <optional>
#include <set>
#include <utility>

#include "tools/case/json_reader.h"

namespace penstock {
namespace {

Result<Json> ParseObject(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) return json;
  return InvalidArgument("E-case", "not a JSON object");
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

void ReadPlacement(JsonReader& in, const Dispatchers& dispatchers, plan::TranspileConfig& config) {
  std::string method(plan::PlacementName(config.placement));
  in.Read("split_method", method);
  const auto own = dispatchers.find(method);
  if (own != dispatchers.end()) {
    config.dispatcher = own->second;
  } else if (const std::optional<plan::Placement> placement = plan::PlacementFromName(method)) {
    config.placement = *placement;
  } else {
    in.Fail(InvalidArgument("E-case", "key \"split_method\": ", Quote(method), " is none of ",
                            plan::PlacementNames())
                .With("note: a dispatcher of your own is code: give it to transpile() in Python or C++"));
  }
  std::string slicing(plan::SlicingName(config.slicing));
  in.Read("slicing", slicing);
  if (const std::optional<plan::Slicing> known = plan::SlicingFromName(slicing)) {
    config.slicing = *known;
  } else {
    in.Fail(
        InvalidArgument("E-case", "key \"slicing\": ", Quote(slicing), " is none of ", plan::SlicingNames()));
  }
}

void ReadRings(JsonReader& in, plan::TranspileConfig& config) {
  in.Read("collective_mode", config.collective_mode);
  in.Read("nccl_comm_num", config.rings);
  in.Read("local_sgd_k_steps", config.local_sgd_k_steps);
  in.Read("local_sgd_adaptive", config.local_sgd_adaptive);
  config.hierarchical = in.Find("hierarchical_inter_nranks") != nullptr;
  in.Read("hierarchical_inter_nranks", config.node_ranks);
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

void ReadBnSync(JsonReader& in, plan::TranspileConfig& config) {
  std::string name(plan::BnSyncName(config.bn_sync));
  in.Read("bn_sync", name);
  if (const auto known = plan::BnSyncFromName(name)) {
    config.bn_sync = *known;
  } else {
    in.Fail(InvalidArgument("E-case", "key \"bn_sync\": ", Quote(name), " is neither none nor average"));
  }
}

void ReadClip(JsonReader& in, plan::TranspileConfig& config) {
  std::string name(plan::ClipName(config.clip));
  in.Read("clip", name);
  if (const auto known = plan::ClipFromName(name)) {
    config.clip = *known;
  } else {
    in.Fail(InvalidArgument("E-case", "key \"clip\": ", Quote(name), " is neither local nor global"));
  }
}

void ReadDenseExchange(JsonReader& in, plan::TranspileConfig& config) {
  std::string name = "pserver";
  in.Read("dense_exchange", name);
  if (const auto known = plan::DenseExchangeFromName(name)) {
    config.dense = *known;
  } else {
    in.Fail(InvalidArgument("E-case", "key \"dense_exchange\": ", Quote(name),
                            " is none of pserver, allreduce, auto"));
  }
  in.Read("exchange_gbit", config.exchange_gbit);
  in.Read("exchange_message_us", config.exchange_message_us);
}

void ReadPolicies(JsonReader& in, plan::TranspileConfig& config) {
  in.Read("staleness", config.staleness);
  in.Read("backup_trainers", config.backup_trainers);
  std::string on_uneven(OnUnevenName(config.on_uneven));
  in.Read("on_uneven", on_uneven);
  if (const auto known = OnUnevenFromName(on_uneven)) {
    config.on_uneven = *known;
  } else {
    in.Fail(
        InvalidArgument("E-case", "key \"on_uneven\": ", Quote(on_uneven), " is none of join, pad, error"));
  }
  std::string compression;
  in.Read("compression", compression);
  Result<CompressionRules> rules = ParseCompression(compression);
  if (!rules.ok()) return in.Fail(std::move(rules).status());
  config.compression = *std::move(rules);
}

Status ReadConfig(const Json& json, const Dispatchers& dispatchers, plan::TranspileConfig& config) {
  JsonReader in(json);
  ReadKind(in, config);
  ReadRings(in, config);
  ReadDenseExchange(in, config);
  ReadPlacement(in, dispatchers, config);
  in.Read("trainers", config.trainers);
  in.Read("trainer_ids", config.trainer_ids);
  in.Read("slice_var_up", config.slice_params);
  in.Read("min_block_size", config.min_block_size);
  in.Read("min_block_size_after_ctor", config.allow_small_blocks);
  in.Read("big_array_bound", config.big_array_bound);
  in.Read("chunk_bytes", config.chunk_bytes);
  in.Read("sync_mode", config.sync_mode_argument);
  in.Read("config_sync_mode", config.sync_mode_field);
  in.Read("runtime_split_send_recv", config.runtime_split_send_recv);
  in.Read("half_async", config.half_async);
  in.Read("completely_not_async", config.completely_not_async);
  in.Read("enable_dc_asgd", config.dc_asgd);
  in.Read("dc_asgd_lambda", config.dc_asgd_lambda);
  ReadBnSync(in, config);
  ReadClip(in, config);
  ReadPolicies(in, config);
  in.Read("shared_transpiler", config.shared_transpiler);
  in.Read("geo_sgd_need_push_nums", config.geo_push_every);
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
