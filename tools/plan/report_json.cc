// The report for programs, as JSON. Keys are in the order of the README's list, which is part of the
// interface.
#include <nlohmann/json.hpp>

#include "tools/plan/report.h"

namespace penstock::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;

// Names of variables may contain any bytes; JSON is UTF-8.
std::string Dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json Of(const cost::Volume& volume) { return {{"messages", volume.messages}, {"bytes", volume.bytes}}; }

Json Of(const cost::Traffic& traffic) { return {{"up", Of(traffic.up)}, {"down", Of(traffic.down)}}; }

Json Of(const cost::Imbalance& imbalance) {
  return {{"factor", imbalance.factor},
          {"largest", imbalance.largest},
          {"largest_bytes", imbalance.largest_bytes},
          {"mean_bytes", imbalance.mean_bytes}};
}

Json Of(const cost::JobMemory& memory) {
  return {{"parameters", memory.parameters},
          {"gradients", memory.gradients},
          {"optimizer_state", memory.optimizer_state},
          {"copies", memory.copies},
          {"other", memory.other},
          {"activations", memory.activations},
          {"activations_per_example", memory.activations_per_example}};
}

Json Pservers(const JobReport& report) {
  Json out = Json::array();
  for (std::size_t i = 0; i < report.cost.pservers.size(); ++i) {
    const cost::PserverCost& pserver = report.cost.pservers[i];
    Json pieces = Json::array();
    for (const cost::JobPiece& piece : report.job.pieces) {
      if (piece.pserver != static_cast<int>(i)) continue;
      pieces.push_back({{"name", piece.name},
                        {"param", piece.param},
                        {"dtype", DTypeName(piece.dtype)},
                        {"shape", piece.shape.dims()},
                        {"sparse", piece.sparse},
                        {"bytes", piece.value_bytes},
                        {"gradient_bytes", piece.gradient_bytes},
                        {"state_bytes", piece.state_bytes}});
    }
    Json one = {{"address", pserver.address},
                {"parameter_bytes", pserver.parameter_bytes},
                {"gradient_bytes", pserver.gradient_bytes},
                {"state_bytes", pserver.state_bytes},
                {"other_bytes", pserver.other_bytes},
                {"traffic", Of(pserver.traffic)},
                {"pieces", std::move(pieces)}};
    if (pserver.told.messages > 0) one["told_to_pservers"] = Of(pserver.told);
    out.push_back(std::move(one));
  }
  return out;
}

Json Trainers(const JobReport& report) {
  Json out = Json::array();
  for (std::size_t i = 0; i < report.cost.trainers.size(); ++i) {
    const cost::TrainerCost& trainer = report.cost.trainers[i];
    Json one = {
        {"file", report.job.present[i].file}, {"count", trainer.count}, {"memory", Of(trainer.memory)}};
    if (report.job.pservers.empty()) {
      one["ring"] = Of(trainer.ring);
      one["inside_host"] = Of(trainer.inside_host);
    } else {
      Json links = Json::array();
      for (const cost::Traffic& traffic : trainer.to) links.push_back(Of(traffic));
      one["traffic"] = Of(trainer.total);
      one["by_pserver"] = std::move(links);
    }
    out.push_back(std::move(one));
  }
  return out;
}

Json Tables(const cost::CostReport& cost) {
  Json out = Json::array();
  for (const cost::TableCost& table : cost.tables) {
    out.push_back({{"param", table.param},
                   {"rows", table.rows},
                   {"row_bytes", table.row_bytes},
                   {"trainers_hold_it", !table.remote},
                   {"up_bytes_per_row", table.up_bytes_per_row},
                   {"down_bytes_per_row", table.down_bytes_per_row},
                   {"rows_touched", table.rows_touched ? Json(*table.rows_touched) : Json()}});
  }
  return out;
}

Json Of(const cost::Expectation& expected, const cost::Network& network) {
  return {{"bits_per_second", network.bits_per_second},
          {"single_step_ms", network.step_ms},
          {"message_us", network.message_us},
          {"backward_ms", expected.backward_ms},
          {"exposed_push_ms", expected.exposed_push_ms},
          {"exposed_told_ms", expected.exposed_told_ms},
          {"exposed_pull_ms", expected.exposed_pull_ms},
          {"pserver_ms", expected.pserver_ms},
          {"step_ms", expected.step_ms},
          {"exposed_ms", expected.exposed_ms},
          {"efficiency", expected.efficiency},
          {"speedup", expected.speedup}};
}

Json Of(const cost::PserverAdvice& advice) {
  Json tried = Json::array();
  for (const cost::PserverChoice& choice : advice.tried) {
    tried.push_back({{"pservers", choice.pservers},
                     {"imbalance", choice.parameters.factor},
                     {"busiest_up", Of(choice.busiest_up)},
                     {"busiest_down", Of(choice.busiest_down)},
                     {"step_ms", choice.step_ms},
                     {"efficiency", choice.efficiency}});
  }
  return {{"chosen", advice.chosen},
          {"best", advice.best},
          {"tolerance", cost::kStepTolerance},
          {"as_given", advice.as_given},
          {"tried", std::move(tried)}};
}

}  // namespace

std::string ReportJson(const JobReport& report) {
  Json out = {{"schema", kSchema},
              {"exchange", cost::ExchangeName(report.job.exchange)},
              {"steps_per_exchange", report.cost.steps_per_exchange},
              {"trainers", report.job.trainers},
              {"ranks_per_host", report.job.ranks_per_host}};
  out["notes"] = report.job.notes;
  out["pservers"] = Pservers(report);
  out["trainer_programs"] = Trainers(report);
  out["tables"] = Tables(report.cost);
  if (!report.job.pservers.empty()) {
    out["imbalance"] = {{"parameters", Of(report.cost.parameters)},
                        {"traffic", Of(report.cost.traffic)},
                        {"size_balanced_factor", report.cost.by_size.factor}};
  }
  if (report.expectation) out["expected"] = Of(*report.expectation, *report.question.network);
  if (!report.advice.tried.empty()) out["choice"] = Of(report.advice);
  return Dump(out);
}

}  // namespace penstock::tools
