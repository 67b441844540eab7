// The report as text for reading.
#include <algorithm>
#include <cmath>

#include "framework/base/hash.h"
#include "framework/base/strings.h"
#include "tools/plan/numbers.h"
#include "tools/plan/report.h"

namespace penstock::tools {
namespace {

using Row = std::vector<std::string>;

std::string Hex(std::uint64_t value) {
  std::string out(16, '0');
  for (int i = 15; i >= 0; --i, value >>= 4)
    out[static_cast<std::size_t>(i)] = "0123456789abcdef"[value & 15];
  return out;
}

std::string Head(const JobReport& report) {
  const cost::Job& job = report.job;
  std::string out = StrCat(cost::ExchangeName(job.exchange), ": ", Count(job.trainers, "trainer"));
  if (!job.pservers.empty())
    out += StrCat(", ", Count(static_cast<std::int64_t>(job.pservers.size()), "pserver"));
  if (job.ranks_per_host > 0) out += StrCat(", ", job.ranks_per_host, " on each host");
  if (!job.plan.empty()) out += StrCat("; plan ", Hex(Fnv1a64(job.plan)));
  out += "\n";
  for (const std::string& note : job.notes) out += StrCat("  note: ", note, "\n");
  return out;
}

std::string Held(const JobReport& report) {
  TextTable table(
      {"pserver", "address", "pieces", "parameters", "gradients", "optimizer state", "other", "all"}, 2);
  cost::PserverCost sum;
  int number = 0;
  const auto add = [&](const std::string& name, const cost::PserverCost& p) {
    table.Add({name, p.address, Grouped(p.pieces), Grouped(p.parameter_bytes), Grouped(p.gradient_bytes),
               Grouped(p.state_bytes), Grouped(p.other_bytes), Grouped(p.TotalBytes())});
  };
  for (const cost::PserverCost& p : report.cost.pservers) {
    add(StrCat(number++), p);
    sum.pieces += p.pieces;
    sum.parameter_bytes += p.parameter_bytes;
    sum.gradient_bytes += p.gradient_bytes;
    sum.state_bytes += p.state_bytes;
    sum.other_bytes += p.other_bytes;
  }
  add("all", sum);
  return StrCat("\nwhat pservers hold, in bytes\n", table.ToString());
}

bool HasUnknownRows(const cost::CostReport& cost) {
  return std::any_of(cost.tables.begin(), cost.tables.end(),
                     [](const cost::TableCost& table) { return !table.rows_touched; });
}

std::string ImbalanceLine(std::string_view of, const cost::Imbalance& imbalance, bool without_rows = false) {
  return StrCat("  imbalance of ", of, " ", Fixed(imbalance.factor, 2), ": pserver ", imbalance.largest,
                " has ", Grouped(imbalance.largest_bytes), " bytes, the mean is ",
                Grouped(std::llround(imbalance.mean_bytes)),
                without_rows ? ", without the rows of tables\n" : "\n");
}

// A hint names only changes that would help.
std::string Hint(const cost::CostReport& cost) {
  if (cost.parameters.factor <= cost::kImbalanceHint) return "";
  if (cost.by_size_helps) {
    return StrCat("  hint: with split_method SizeBalanced, the same pieces give ",
                  Fixed(cost.by_size.factor, 2), "\n");
  }
  const std::string alone =
      StrCat("since ", cost.largest_piece, " alone has ", Grouped(cost.largest_piece_bytes), " bytes");
  switch (cost.largest_piece_stays) {
    case cost::CostReport::Stays::kOneRow:
      return StrCat("  hint: neither another placement nor smaller slices would help, ", alone,
                    " in one row; fewer pservers would\n");
    case cost::CostReport::Stays::kUpdatedAsOne:
      return StrCat("  hint: neither another placement nor smaller slices would help, ", alone,
                    " and its update needs all of it; fewer pservers would\n");
    case cost::CostReport::Stays::kNot:
      break;
  }
  return StrCat("  hint: another placement would not help, ", alone,
                "; smaller slices or fewer pservers would\n");
}

std::string Pieces(const JobReport& report) {
  TextTable table({"pserver", "piece", "of", "type", "bytes"}, 4);
  for (const cost::JobPiece& piece : report.job.pieces) {
    table.Add({StrCat(piece.pserver), piece.name, piece.param,
               StrCat(DTypeName(piece.dtype), piece.shape, piece.sparse ? " by rows" : ""),
               Grouped(piece.value_bytes)});
  }
  return StrCat("\npieces\n", table.ToString());
}

Row TrafficRow(std::string name, const cost::Traffic& traffic) {
  return {std::move(name), Grouped(traffic.up.messages), Grouped(traffic.up.bytes),
          Grouped(traffic.down.messages), Grouped(traffic.down.bytes)};
}

bool SameTraffic(const cost::TrainerCost& a, const cost::TrainerCost& b) {
  return std::equal(
      a.to.begin(), a.to.end(), b.to.begin(), b.to.end(),
      [](const cost::Traffic& x, const cost::Traffic& y) { return x.up == y.up && x.down == y.down; });
}

std::string Passing(const JobReport& report) {
  const cost::CostReport& cost = report.cost;
  TextTable table({"between", "messages up", "bytes up", "messages down", "bytes down"}, 1);
  const bool alike = std::all_of(
      cost.trainers.begin(), cost.trainers.end(),
      [&](const cost::TrainerCost& trainer) { return SameTraffic(trainer, cost.trainers.front()); });
  for (std::size_t i = 0; i < cost.trainers.size(); ++i) {
    const cost::TrainerCost& trainer = cost.trainers[i];
    if (alike && i > 0) break;
    const std::string name = alike               ? std::string("each trainer")
                             : trainer.count > 1 ? StrCat("trainer ", i, " and each that is not here")
                                                 : StrCat("trainer ", i);
    for (std::size_t p = 0; p < trainer.to.size(); ++p) {
      table.Add(TrafficRow(StrCat(name, " and pserver ", p), trainer.to[p]));
    }
    table.Add(TrafficRow(StrCat(name, " and all pservers"), trainer.total));
  }
  cost::Traffic all;
  for (std::size_t p = 0; p < cost.pservers.size(); ++p) {
    table.Add(TrafficRow(StrCat("all trainers and pserver ", p), cost.pservers[p].traffic));
    all += cost.pservers[p].traffic;
  }
  table.Add(TrafficRow("all", all));
  return StrCat("\nwhat passes in ", ExchangeWords(report), "; up is to the pservers\n", table.ToString());
}

std::string Tellings(const JobReport& report) {
  if (report.job.tellings.empty()) return "";
  TextTable table({"pserver", "messages", "bytes"}, 1);
  cost::Volume all;
  for (const cost::JobTelling& telling : report.job.tellings) {
    const cost::Volume& told = report.cost.pservers[static_cast<std::size_t>(telling.pserver)].told;
    table.Add({StrCat(telling.pserver), Grouped(told.messages), Grouped(told.bytes)});
    all += told;
  }
  table.Add({"all", Grouped(all.messages), Grouped(all.bytes)});
  return StrCat("\nwhat pservers tell each other before they update\n", table.ToString());
}

std::string Ring(const JobReport& report) {
  const cost::Job& job = report.job;
  const cost::TrainerCost& rank = report.cost.trainers.front();
  std::int64_t bytes = 0;
  for (const cost::JobReduction& reduction : job.present.front().reductions) bytes += reduction.bytes;
  const int hosts = job.trainers / std::max(1, job.ranks_per_host);
  std::string out = StrCat(
      "\nwhat passes in ", ExchangeWords(report), ": ",
      Count(static_cast<std::int64_t>(job.present.front().reductions.size()), "variable"), " of ",
      Grouped(bytes), " bytes are added up\n  ring of ", hosts, ": ",
      job.ranks_per_host > 0 ? "the first rank of each host" : "each rank", " sends ",
      Count(rank.ring.messages, "message"), " and ", Grouped(rank.ring.bytes), " bytes, and gets as much\n");
  if (job.ranks_per_host > 0) {
    out += StrCat("  inside a host: every other rank hands ", Grouped(rank.inside_host.bytes),
                  " bytes to the first and gets as much back\n");
  }
  return out;
}

std::string Tables(const JobReport& report) {
  if (report.cost.tables.empty()) return "";
  TextTable table(
      {"table", "rows", "bytes a row", "a row touched: up", "down", "rows touched", "trainers hold it"}, 1);
  for (const cost::TableCost& one : report.cost.tables) {
    table.Add({one.param, Grouped(one.rows), Grouped(one.row_bytes), Grouped(one.up_bytes_per_row),
               Grouped(one.down_bytes_per_row), one.rows_touched ? Grouped(*one.rows_touched) : "not known",
               one.remote ? "no" : "yes"});
  }
  std::string out = StrCat("\ntables, of which single rows pass; per trainer and ", ExchangeWords(report),
                           "\n", table.ToString());
  if (HasUnknownRows(report.cost)) {
    out +=
        "  rows touched are not known, and their bytes are in no other number: give --rows-per-step or "
        "--batch\n";
  }
  return out;
}

Row MemoryRow(std::string name, const cost::JobMemory& memory, const JobReport& report) {
  const std::int64_t batch = report.question.cost.batch.value_or(0);
  const std::int64_t activations = memory.activations + batch * memory.activations_per_example;
  return {std::move(name),
          Grouped(memory.parameters),
          Grouped(memory.gradients),
          Grouped(memory.optimizer_state),
          Grouped(memory.copies),
          Grouped(memory.other),
          Grouped(activations),
          Grouped(memory.parameters + memory.gradients + memory.optimizer_state + memory.copies +
                  memory.other + activations)};
}

std::string Memory(const JobReport& report) {
  TextTable table(
      {"role", "parameters", "gradients", "optimizer state", "copies", "other", "activations", "all"}, 1);
  const auto& trainers = report.cost.trainers;
  const bool alike = std::all_of(trainers.begin(), trainers.end(), [&](const cost::TrainerCost& trainer) {
    return trainer.memory == trainers.front().memory;
  });
  for (std::size_t i = 0; i < (alike ? 1 : trainers.size()); ++i) {
    const std::string name = alike && report.job.trainers > 1
                                 ? StrCat("each of ", Count(report.job.trainers, "trainer"))
                             : trainers[i].count > 1 ? StrCat("trainer ", i, " and each that is not here")
                                                     : StrCat("trainer ", i);
    table.Add(MemoryRow(name, trainers[i].memory, report));
  }
  for (std::size_t i = 0; i < report.job.pserver_memory.size(); ++i) {
    table.Add(MemoryRow(StrCat("pserver ", i), report.job.pserver_memory[i], report));
  }
  std::string out = StrCat("\nmemory of each process, in bytes\n", table.ToString());
  const cost::JobMemory& first = trainers.front().memory;
  if (!report.question.cost.batch && first.activations_per_example > 0) {
    out += StrCat("  and ", Grouped(first.activations_per_example),
                  " bytes of activations for each example of a trainer's batch: give --batch\n");
  }
  if (first.unknown > 0) {
    out += StrCat("  without ", Count(first.unknown, "variable"), " of more than one unknown extent\n");
  }
  return out;
}

}  // namespace

std::string ExchangeWords(const JobReport& report) {
  const int steps = report.cost.steps_per_exchange;
  return steps == 1 ? "a step" : StrCat(steps, " steps");
}

std::string ReportText(const JobReport& report, const TextOptions& options) {
  std::string out = Head(report);
  const bool pservers = !report.job.pservers.empty();
  if (pservers) {
    out += Held(report) + ImbalanceLine("parameters", report.cost.parameters);
    out += ImbalanceLine("what passes", report.cost.traffic, HasUnknownRows(report.cost)) + Hint(report.cost);
    if (options.pieces) out += Pieces(report);
  }
  out += pservers ? Passing(report) + Tellings(report) : Ring(report);
  return out + Tables(report) + Memory(report) + ReportArithmetic(report) + ReportAdvice(report);
}

Result<JobReport> MakeJobReport(cost::Job job, const JobQuestion& question) {
  JobReport report{.job = std::move(job), .question = question, .cost = {}, .expectation = {}, .advice = {}};
  if (report.job.exchange == cost::Exchange::kGeo && !question.cost.steps_per_exchange) {
    report.job.notes.push_back(StrCat("no program says how often geo mode exchanges: taken to be every ",
                                      report.job.steps_per_exchange, " steps"));
  }
  PENSTOCK_ASSIGN_OR_RETURN(report.cost, cost::EstimateCost(report.job, question.cost));
  if (question.network) {
    PENSTOCK_ASSIGN_OR_RETURN(report.expectation, cost::Expect(report.job, report.cost, *question.network));
    const plan::TranspileConfig like = question.like ? *question.like : cost::ConfigLike(report.job);
    PENSTOCK_ASSIGN_OR_RETURN(report.advice,
                              cost::ChoosePservers(report.job, question.cost, *question.network, like));
  }
  return report;
}

}  // namespace penstock::tools
