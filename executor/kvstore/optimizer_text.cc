// The text of a KeyOptimizer:
//
//   optimizer = name numbers [ "schedule" name numbers [ "steps" "[" int,* "]" ] [ "constant_warmup" ] ]
//               [ "lr_mult" numbers ] [ "wd_mult" numbers ] [ "names" "{" (name "=" name),* "}" ]
//             | "program" "param" name "grad" name "update" string "start" string    programs: framework/text
//   numbers   = "{" (name "=" number),* "}"
#include <charconv>
#include <limits>
#include <utility>

#include "executor/kvstore/optimizer_program.h"
#include "framework/base/strings.h"
#include "framework/text/cursor.h"
#include "framework/text/parser.h"

namespace penstock::kvstore {
namespace {

using ParamNames = std::map<std::string, std::string, std::less<>>;

std::string TextOf(const Numbers& numbers) {
  std::vector<std::string> items;
  for (const auto& [name, value] : numbers) items.push_back(StrCat(SpellName(name), "=", value));
  return StrCat("{", Join(items, ", "), "}");
}

class OptimizerParser {
 public:
  OptimizerParser(std::string_view text, const OpRegistry* ops) : in_(text, "optimizer"), ops_(ops) {}

  Result<KeyOptimizer> Parse() {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string name, in_.Name("the name of an optimizer"));
    if (name == "program") return ReadProgram();
    PENSTOCK_ASSIGN_OR_RETURN(const Numbers numbers, ReadNumbers());
    Schedule schedule;
    if (in_.TakeIf("schedule")) {
      PENSTOCK_ASSIGN_OR_RETURN(schedule, ReadSchedule());
    }
    Numbers lr_mult, wd_mult;
    if (in_.TakeIf("lr_mult")) {
      PENSTOCK_ASSIGN_OR_RETURN(lr_mult, ReadNumbers());
    }
    if (in_.TakeIf("wd_mult")) {
      PENSTOCK_ASSIGN_OR_RETURN(wd_mult, ReadNumbers());
    }
    ParamNames names;
    if (in_.TakeIf("names")) PENSTOCK_RETURN_IF_ERROR(ReadNames(names));
    if (!in_.AtEnd()) return in_.Error(StrCat("expected the end, ", in_.Found()));
    PENSTOCK_ASSIGN_OR_RETURN(KeyOptimizer made,
                              MakeOptimizer(name, numbers, std::move(schedule), std::move(names)));
    made.lr_multipliers = std::move(lr_mult);
    made.wd_multipliers = std::move(wd_mult);
    return made;
  }

 private:
  Result<KeyOptimizer> ReadProgram() {
    OptimizerProgram program;
    PENSTOCK_RETURN_IF_ERROR(in_.Expect("param"));
    PENSTOCK_ASSIGN_OR_RETURN(program.param, in_.Name("the name of the parameter"));
    PENSTOCK_RETURN_IF_ERROR(in_.Expect("grad"));
    PENSTOCK_ASSIGN_OR_RETURN(program.grad, in_.Name("the name of the gradient"));
    PENSTOCK_RETURN_IF_ERROR(in_.Expect("update"));
    PENSTOCK_ASSIGN_OR_RETURN(const std::string update, in_.Name("a program"));
    PENSTOCK_RETURN_IF_ERROR(in_.Expect("start"));
    PENSTOCK_ASSIGN_OR_RETURN(const std::string start, in_.Name("a program"));
    if (!in_.AtEnd()) return in_.Error(StrCat("expected the end, ", in_.Found()));
    if (ops_ == nullptr)
      return InvalidArgument("E-kv-program", "the optimizer is a program, and this process knows no ops");
    PENSTOCK_ASSIGN_OR_RETURN(program.update, ParseText(update, "the optimizer's program"));
    PENSTOCK_ASSIGN_OR_RETURN(program.start, ParseText(start, "the optimizer's startup program"));
    return ProgramOptimizer(std::move(program), *ops_);
  }
  Result<Schedule> ReadSchedule() {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string type, in_.Name("the name of a schedule"));
    PENSTOCK_ASSIGN_OR_RETURN(const Numbers numbers, ReadNumbers());
    std::vector<std::int64_t> steps;
    if (in_.TakeIf("steps")) {
      PENSTOCK_RETURN_IF_ERROR(in_.Open("["));
      do {
        PENSTOCK_ASSIGN_OR_RETURN(const std::int64_t step,
                                  in_.Integer("a step", 0, std::numeric_limits<std::int64_t>::max()));
        steps.push_back(step);
      } while (in_.TakeIf(","));
      PENSTOCK_RETURN_IF_ERROR(in_.Close("]"));
    }
    const bool constant_warmup = in_.TakeIf("constant_warmup");
    return MakeSchedule(type, numbers, std::move(steps), constant_warmup);
  }

  // Calls read(name) behind each "name =" in braces. No name may occur twice.
  template <typename Read>
  Status ReadItems(const Read& read) {
    PENSTOCK_RETURN_IF_ERROR(in_.Open("{"));
    if (!in_.At("}")) {
      do {
        const Token begin = in_.Peek();
        PENSTOCK_ASSIGN_OR_RETURN(std::string name, in_.Name("a name"));
        PENSTOCK_RETURN_IF_ERROR(in_.Expect("="));
        PENSTOCK_ASSIGN_OR_RETURN(const bool is_new, read(std::move(name)));
        if (!is_new) return in_.ErrorAt(begin, StrCat(SpellName(begin.text), " is given twice"));
      } while (in_.TakeIf(","));
    }
    return in_.Close("}");
  }

  Result<Numbers> ReadNumbers() {
    Numbers numbers;
    PENSTOCK_RETURN_IF_ERROR(ReadItems([&](std::string name) -> Result<bool> {
      PENSTOCK_ASSIGN_OR_RETURN(const double value, ReadNumber());
      return numbers.emplace(std::move(name), value).second;
    }));
    return numbers;
  }
  Status ReadNames(ParamNames& names) {
    return ReadItems([&](std::string key) -> Result<bool> {
      PENSTOCK_ASSIGN_OR_RETURN(std::string name, in_.Name("the name of a parameter"));
      return names.emplace(std::move(key), std::move(name)).second;
    });
  }
  Result<double> ReadNumber() {
    const TokenKind kind = in_.Peek().kind;
    if (kind != TokenKind::kInt && kind != TokenKind::kFloat)
      return in_.Error(StrCat("expected a number, ", in_.Found()));
    const Token token = in_.Take();
    double value = std::numeric_limits<double>::infinity();  // of a number that is too large
    std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
    return value;
  }

  Cursor in_;
  const OpRegistry* const ops_;  // may be null
};

}  // namespace

std::string KeyOptimizer::ToString() const {
  if (program != nullptr) return StrCat(name, " ", kvstore::TextOf(*program));
  std::string text = StrCat(name, " ", TextOf(numbers));
  if (!schedule.none()) {
    text += StrCat(" schedule ", schedule.type, " ", TextOf(schedule.numbers));
    if (!schedule.steps.empty()) text += StrCat(" steps [", Join(schedule.steps, ", "), "]");
    if (schedule.constant_warmup) text += " constant_warmup";
  }
  if (!lr_multipliers.empty()) text += StrCat(" lr_mult ", TextOf(lr_multipliers));
  if (!wd_multipliers.empty()) text += StrCat(" wd_mult ", TextOf(wd_multipliers));
  if (!param_names.empty()) {
    std::vector<std::string> items;
    for (const auto& [key, param] : param_names)
      items.push_back(StrCat(SpellName(key), "=", SpellName(param)));
    text += StrCat(" names {", Join(items, ", "), "}");
  }
  return text;
}

Result<KeyOptimizer> ParseOptimizer(std::string_view text, const OpRegistry* ops) {
  return OptimizerParser(text, ops).Parse();
}

}  // namespace penstock::kvstore
