// Prints and parses plans. The text is parsed line by line. Names with other characters than IsNameChar are
// quoted.
#include <cctype>
#include <numeric>
#include <optional>

#include "transpiler/plan/plan.h"
#include "transpiler/plan/plan_line.h"
#include "transpiler/plan/plan_settings.h"

namespace penstock::plan {
namespace {

constexpr char kFluidDialect[] = "fluid-1.8", kRemoved[] = "removed";
constexpr char kSparseReason[] = "sparse", kOneTrainerReason[] = "one trainer";

std::string Name(const std::string& name) {
  bool plain = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) && name[0] != '.' &&
               name[0] != '@' && name[0] != '/';
  for (const char c : name) plain = plain && IsNameChar(c);
  return plain ? name : Quote(name);
}

bool InOrder(const std::vector<int>& order) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int>(i)) return false;
  }
  return true;
}

std::string PrintAddresses(const std::vector<std::string>& addresses) {
  std::vector<std::string> quoted;
  quoted.reserve(addresses.size());
  for (const std::string& address : addresses) quoted.push_back(Quote(address));
  return StrCat("[", Join(quoted, ", "), "]");
}

std::string PrintRanks(const RankPlan& ranks) {
  std::string out = StrCat(", ranks=", PrintAddresses(ranks.addresses), ", rings=", ranks.rings);
  if (ranks.node_ranks > 0) out += StrCat(", node_ranks=", ranks.node_ranks);
  if (ranks.average_every != 1) out += StrCat(", average_every=", ranks.average_every);
  return out;
}

std::string PrintHeader(const PlacementPlan& plan) {
  std::string out = StrCat("plan {mode=", Quote(ModeName(plan.mode)), ", trainers=", plan.trainers);
  const bool ranks = !plan.ranks.addresses.empty();
  if (!ranks || !plan.pservers.empty()) out += StrCat(", pservers=", PrintAddresses(plan.pservers));
  if (ranks) out += PrintRanks(plan.ranks);
  if (plan.push_every != 0) out += StrCat(", push_every=", plan.push_every);
  if (plan.server_mode != ServerModeOf(plan.mode)) {
    out += StrCat(", server_mode=", Quote(ServerModeName(plan.server_mode)));
  }
  out += PrintSettings(plan);
  if (plan.dialect == Dialect::kFluid18) out += StrCat(", dialect=", Quote(kFluidDialect));
  if (plan.lacks_unwritten_parts) out += StrCat(", unwritten_parts=", Quote(kRemoved));
  if (!InOrder(plan.send_order)) out += StrCat(", send_order=[", Join(plan.send_order, ", "), "]");
  return out + "}\n";
}

std::string PrintTable(const TablePlacement& table) {
  return StrCat("table ", Name(table.table), " : ", DTypeName(table.dtype), table.shape,
                " grad=", Name(table.grad), " rows by id",
                table.policy.none() ? "" : StrCat(" policy=", Quote(table.policy.ToString())), "\n");
}

std::string PrintParam(const ParamPlacement& param) {
  std::string out = StrCat("param ", Name(param.param), " : ", DTypeName(param.dtype), param.shape,
                           " grad=", Name(param.grad), param.sparse ? " sparse" : "",
                           param.prefetched ? " prefetched" : "");
  if (!param.mark.empty()) out += StrCat(" mark=", Quote(param.mark));
  if (!param.compression.none()) out += StrCat(" compression=", Quote(param.compression.ToString()));
  out += "\n";
  for (const Slice& slice : param.slices) {
    out += StrCat("  rows [", slice.row_begin, ", ", slice.row_end, ") on pserver ", slice.pserver);
    if (slice.chunk_rows != slice.rows()) out += StrCat(" in chunks of ", slice.chunk_rows);
    if (!slice.sent_to.empty()) out += StrCat(" sent_to=[", Join(slice.sent_to, ", "), "]");
    out += "\n";
  }
  return out;
}

std::string PrintRingUse(std::string_view what, const RingUse& use) {
  return StrCat(what, " ", Name(use.var), " : ", DTypeName(use.dtype), use.shape, use.sparse ? " sparse" : "",
                " on ring ", use.ring, "\n");
}

std::string PrintExchange(const ExchangeChoice& choice) {
  std::string out = StrCat("exchange ", Name(choice.param), " by ", DenseExchangeName(choice.way), ": ");
  switch (choice.reason) {
    case ExchangeChoice::Reason::kTimes:
      out += StrCat("allreduce ", choice.allreduce_ns, " ns, pserver ", choice.pserver_ns, " ns");
      break;
    case ExchangeChoice::Reason::kSparse:
      out += kSparseReason;
      break;
    case ExchangeChoice::Reason::kOneTrainer:
      out += kOneTrainerReason;
      break;
  }
  return out + "\n";
}

std::string PrintStartValue(const StartValue& value) {
  return StrCat("start ", Name(value.name), " : ", DTypeName(value.dtype), value.shape, " on pserver ",
                value.pserver, value.statistic ? " statistic" : "", "\n");
}

bool ParseMode(Line& line, PlacementPlan& plan) {
  std::string name;
  if (!line.Text(name)) return false;
  const std::optional<Mode> mode = ModeFromName(name);
  if (!mode) return false;
  plan.mode = *mode;
  plan.server_mode = ServerModeOf(*mode);
  return true;
}

bool ParseServerMode(Line& line, PlacementPlan& plan) {
  std::string name;
  if (!line.Text(name)) return false;
  const std::optional<ServerMode> mode = ServerModeFromName(name);
  if (mode) plan.server_mode = *mode;
  return mode.has_value();
}

bool ParseDialect(Line& line, PlacementPlan& plan) {
  std::string name;
  if (!line.Text(name) || name != kFluidDialect) return false;
  plan.dialect = Dialect::kFluid18;
  return true;
}

bool ParseUnwrittenParts(Line& line, PlacementPlan& plan) {
  std::string what;
  plan.lacks_unwritten_parts = true;
  return line.Text(what) && what == kRemoved;
}

// A key of the header that is no setting's, and the function that parses its value.
struct HeaderKey {
  std::string_view key;
  bool (*parse)(Line& line, PlacementPlan& plan);
};
constexpr HeaderKey kHeaderKeys[] = {
    {"mode=", ParseMode},
    {"server_mode=", ParseServerMode},
    {"trainers=", [](Line& line, PlacementPlan& plan) { return line.Number(plan.trainers); }},
    {"pservers=", [](Line& line, PlacementPlan& plan) { return line.List(plan.pservers, &Line::Text); }},
    {"ranks=", [](Line& line, PlacementPlan& plan) { return line.List(plan.ranks.addresses, &Line::Text); }},
    {"rings=", [](Line& line, PlacementPlan& plan) { return line.Number(plan.ranks.rings); }},
    {"node_ranks=", [](Line& line, PlacementPlan& plan) { return line.Number(plan.ranks.node_ranks); }},
    {"average_every=", [](Line& line, PlacementPlan& plan) { return line.Number(plan.ranks.average_every); }},
    {"push_every=", [](Line& line, PlacementPlan& plan) { return line.Number(plan.push_every); }},
    {"dialect=", ParseDialect},
    {"unwritten_parts=", ParseUnwrittenParts},
    {"send_order=",
     [](Line& line, PlacementPlan& plan) { return line.List(plan.send_order, &Line::Number<int>); }},
};

bool ParseHeader(Line line, PlacementPlan& plan) {
  if (!line.Is("plan") || !line.Is("{")) return false;
  do {
    const auto* const known = std::find_if(std::begin(kHeaderKeys), std::end(kHeaderKeys),
                                           [&](const HeaderKey& one) { return line.Is(one.key); });
    if (!(known == std::end(kHeaderKeys) ? ParseSetting(line, plan) : known->parse(line, plan))) return false;
  } while (line.Is(","));
  return line.Is("}") && line.AtEnd();
}

// Every extent must be known.
bool ParseType(Line& line, DType& dtype, Shape& shape) {
  std::string name;
  std::vector<Dim> dims;
  if (!line.Is(":") || !line.NameOrText(name)) return false;
  const std::optional<DType> type = DTypeFromName(name);
  if (!type || !line.List(dims, &Line::Number<Dim>)) return false;
  dtype = *type;
  shape = Shape(std::move(dims));
  return shape.IsKnown();
}

bool ParseRingUse(Line line, RingUse& use) {
  if (!line.NameOrText(use.var) || !ParseType(line, use.dtype, use.shape)) return false;
  use.sparse = line.Is("sparse");
  return line.Is("on") && line.Is("ring") && line.Number(use.ring) && line.AtEnd();
}

bool ParseExchange(Line line, ExchangeChoice& choice) {
  using Reason = ExchangeChoice::Reason;
  if (!line.NameOrText(choice.param) || !line.Is("by ")) return false;
  std::string way;
  if (!line.NameOrText(way) || !line.Is(":")) return false;
  const std::optional<DenseExchange> known = DenseExchangeFromName(way);
  if (!known || known == DenseExchange::kAuto) return false;
  choice.way = *known;
  if (line.Is(kSparseReason)) {
    choice.reason = Reason::kSparse;
  } else if (line.Is(kOneTrainerReason)) {
    choice.reason = Reason::kOneTrainer;
  } else {
    choice.reason = Reason::kTimes;
    if (!line.Is("allreduce") || !line.Number(choice.allreduce_ns) || !line.Is("ns,") ||
        !line.Is("pserver") || !line.Number(choice.pserver_ns) || !line.Is("ns")) {
      return false;
    }
  }
  return line.AtEnd();
}

bool ParseStartValue(Line line, StartValue& value) {
  if (!line.Is("start") || !line.NameOrText(value.name) || !ParseType(line, value.dtype, value.shape) ||
      !line.Is("on") || !line.Is("pserver") || !line.Number(value.pserver)) {
    return false;
  }
  value.statistic = line.Is("statistic");
  return line.AtEnd();
}

bool ParseTable(Line line, TablePlacement& table) {
  if (!line.Is("table") || !line.NameOrText(table.table) || !ParseType(line, table.dtype, table.shape) ||
      !line.Is("grad=") || !line.NameOrText(table.grad) || !line.Is("rows by id")) {
    return false;
  }
  if (line.Is("policy=")) {
    std::string text;
    if (!line.Text(text)) return false;
    const Result<RowPolicy> policy = ParseRowPolicy(text);
    if (!policy.ok()) return false;
    table.policy = *policy;
  }
  return line.AtEnd();
}

// A single compression rule, without a name and for all sizes.
bool ParseHow(Line& line, Compression& compression) {
  std::string text;
  if (!line.Text(text)) return false;
  const Result<CompressionRules> rules = ParseCompression(text);
  if (!rules.ok() || !rules->by_name.empty() || rules->min_size != 0) return false;
  compression = rules->all;
  return true;
}

bool ParseParam(Line line, ParamPlacement& param) {
  if (!line.Is("param") || !line.NameOrText(param.param) || !ParseType(line, param.dtype, param.shape) ||
      !line.Is("grad=") || !line.NameOrText(param.grad)) {
    return false;
  }
  param.sparse = line.Is("sparse");
  param.prefetched = line.Is("prefetched");
  if (line.Is("mark=") && !line.Text(param.mark)) return false;
  if (line.Is("compression=") && !ParseHow(line, param.compression)) return false;
  return line.AtEnd();
}

bool ParseSlice(Line line, Slice& slice) {
  if (!line.Is("rows") || !line.Is("[") || !line.Number(slice.row_begin) || !line.Is(",") ||
      !line.Number(slice.row_end) || !line.Is(")") || !line.Is("on") || !line.Is("pserver") ||
      !line.Number(slice.pserver)) {
    return false;
  }
  slice.chunk_rows = slice.rows();
  if (line.Is("in") && (!line.Is("chunks") || !line.Is("of") || !line.Number(slice.chunk_rows))) return false;
  if (line.Is("sent_to=") && !line.List(slice.sent_to, &Line::Number<int>)) return false;
  return line.AtEnd();
}

}  // namespace

std::string PrintPlan(const PlacementPlan& plan) {
  std::string out = PrintHeader(plan);
  for (const ExchangeChoice& choice : plan.exchanges) out += PrintExchange(choice);
  for (const RingUse& use : plan.ranks.broadcasts) out += PrintRingUse("broadcast", use);
  for (const RingUse& use : plan.ranks.reductions) out += PrintRingUse("reduce", use);
  for (const ParamPlacement& param : plan.params) out += PrintParam(param);
  for (const StartValue& value : plan.start_values) out += PrintStartValue(value);
  for (const TablePlacement& table : plan.tables) out += PrintTable(table);
  return out;
}

Result<PlacementPlan> ParsePlan(std::string_view text) {
  PlacementPlan plan;
  bool header = false;
  int number = 0;
  for (const std::string& raw : Split(text, '\n')) {
    ++number;
    const std::string_view line = StripSpace(raw);
    if (line.empty() || line[0] == '#') continue;
    bool read = false;
    if (!header) {
      read = header = ParseHeader(Line(line), plan);
    } else if (Line use(line); use.Is("exchange ")) {
      read = ParseExchange(use, plan.exchanges.emplace_back());
    } else if (use.Is("broadcast ")) {
      read = ParseRingUse(use, plan.ranks.broadcasts.emplace_back());
    } else if (use.Is("reduce ")) {
      read = ParseRingUse(use, plan.ranks.reductions.emplace_back());
    } else if (StartsWith(line, "param") && plan.tables.empty()) {
      read = ParseParam(Line(line), plan.params.emplace_back());
    } else if (StartsWith(line, "start")) {
      read = ParseStartValue(Line(line), plan.start_values.emplace_back());
    } else if (StartsWith(line, "table")) {
      read = ParseTable(Line(line), plan.tables.emplace_back());
    } else if (!plan.params.empty() && plan.tables.empty()) {
      read = ParseSlice(Line(line), plan.params.back().slices.emplace_back());
    }
    if (!read) return InvalidArgument("E-plan-text", "plan: line ", number, " cannot be read: ", line);
  }
  if (!header) return InvalidArgument("E-plan-text", "plan: there is no line \"plan {...}\"");
  if (plan.send_order.empty()) {
    plan.send_order.resize(plan.params.size());
    std::iota(plan.send_order.begin(), plan.send_order.end(), 0);
  }
  return plan;
}

}  // namespace penstock::plan
