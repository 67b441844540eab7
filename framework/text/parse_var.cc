#include "framework/text/parse_var.h"

#include <array>
#include <limits>
#include <set>

#include "framework/text/var_words.h"

namespace penstock {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// dtype "[" dim,* "]"
Result<TensorType> ParseTensorType(Cursor& in) {
  const Token at = in.Peek();
  TensorType type;
  type.has_lod_level = true;
  const std::optional<DType> dtype = at.kind == TokenKind::kName ? DTypeFromName(at.text) : std::nullopt;
  if (!dtype) return in.Error(StrCat("expected an element type such as f32, ", in.Found()));
  in.Take();
  type.dtype = *dtype;
  PENSTOCK_ASSIGN_OR_RETURN(type.shape, in.ShapeInBrackets());
  return type;
}

// "of" "[" parts "]". An element type with a shape is a part of a reader; an element type without a shape, or
// a number, is a part of a tuple.
Status ParseParts(Cursor& in, Var& var) {
  PENSTOCK_RETURN_IF_ERROR(in.Open("["));
  while (!in.At("]")) {
    if (in.Peek().kind == TokenKind::kInt) {
      PENSTOCK_ASSIGN_OR_RETURN(const std::int64_t number, in.Integer("the number of a type", 0, 255));
      var.tuple.push_back(static_cast<DType>(number));
    } else if (in.PeekSecond().text == "[") {
      PENSTOCK_ASSIGN_OR_RETURN(TensorType part, ParseTensorType(in));
      if (in.TakeIf("lod")) {
        PENSTOCK_RETURN_IF_ERROR(in.Expect("="));
        PENSTOCK_ASSIGN_OR_RETURN(const std::int64_t level, in.Integer("a LoD level", kLodMin, kLodMax));
        part.lod_level = static_cast<std::int32_t>(level);
      }
      var.reader.push_back(std::move(part));
    } else {
      const std::optional<DType> dtype = DTypeFromName(in.Peek().text);
      if (!dtype) return in.Error(StrCat("expected an element type such as f32, ", in.Found()));
      in.Take();
      var.tuple.push_back(*dtype);
    }
    if (!in.TakeIf(",")) break;
  }
  return in.Close("]");
}

// rows=[begin, end) of whole[dims]
Status ParseSlice(Cursor& in, Var& var) {
  InitialSlice slice;
  PENSTOCK_RETURN_IF_ERROR(in.Expect("="));
  PENSTOCK_RETURN_IF_ERROR(in.Expect("["));
  PENSTOCK_ASSIGN_OR_RETURN(slice.row_begin, in.Integer("the first row", -kMost, kMost));
  PENSTOCK_RETURN_IF_ERROR(in.Expect(","));
  PENSTOCK_ASSIGN_OR_RETURN(slice.row_end, in.Integer("the row after the last", -kMost, kMost));
  PENSTOCK_RETURN_IF_ERROR(in.Expect(")"));
  PENSTOCK_RETURN_IF_ERROR(in.Expect("of"));
  PENSTOCK_ASSIGN_OR_RETURN(slice.whole, in.Name("the name of the whole variable"));
  PENSTOCK_ASSIGN_OR_RETURN(slice.whole_shape, in.ShapeInBrackets());
  var.facts.slice = std::move(slice);
  return OkStatus();
}

Status ParseLodFlag(Cursor& in, Var& var) {
  PENSTOCK_RETURN_IF_ERROR(in.Expect("="));
  const Token at = in.Peek();
  PENSTOCK_ASSIGN_OR_RETURN(const std::int64_t level, in.Integer("a LoD level", kLodMin, kLodMax));
  if (!var.type) return in.ErrorAt(at, "a variable without a type has no LoD level");
  var.type->lod_level = static_cast<std::int32_t>(level);
  return OkStatus();
}

// Parses the value behind "=" of a flag.
template <typename T>
Status ParseFlagValue(Cursor& in, std::string_view what, T& out) {
  PENSTOCK_RETURN_IF_ERROR(in.Expect("="));
  const Token at = in.Peek();
  PENSTOCK_ASSIGN_OR_RETURN(const Attr value, in.Literal());
  const T* typed = std::get_if<T>(&value);
  if (typed == nullptr) return in.ErrorAt(at, StrCat(what, " cannot be ", AttrToString(value)));
  out = *typed;
  return OkStatus();
}

Status ParseFlag(Cursor& in, const std::string& flag, const Token& at, Var& var) {
  VarFacts& facts = var.facts;
  const std::array<std::pair<std::string_view, bool*>, 5> words = {{{kStopGradient, &facts.stop_gradient},
                                                                    {kDistributed, &facts.is_distributed},
                                                                    {kParameter, &facts.is_parameter},
                                                                    {kData, &facts.is_data},
                                                                    {kNeedCheckFeed, &var.need_check_feed}}};
  for (const auto& [word, value] : words) {
    if (flag != word) continue;
    *value = true;
    return OkStatus();
  }
  if (flag == kLod) return ParseLodFlag(in, var);
  if (flag == kTrainable) return ParseFlagValue(in, kTrainable, facts.trainable);
  if (flag == kLearningRate) return ParseFlagValue(in, kLearningRate, facts.learning_rate);
  if (flag == kRows) return ParseSlice(in, var);
  return in.ErrorAt(at, StrCat("there is no flag ", flag));
}

}  // namespace

Status ParseVarType(Cursor& in, Var& var) {
  const std::optional<DType> dtype =
      in.Peek().kind == TokenKind::kName ? DTypeFromName(in.Peek().text) : std::nullopt;
  if (dtype) {
    var.kind = VarKind::kTensor;
    PENSTOCK_ASSIGN_OR_RETURN(var.type, ParseTensorType(in));
  } else {
    const std::optional<VarKind> kind =
        in.Peek().kind == TokenKind::kName ? VarKindFromWord(in.Peek().text) : std::nullopt;
    if (!kind) return in.Error(StrCat("expected a type, ", in.Found()));
    in.Take();
    var.kind = *kind;
    if (in.At("<")) {
      if (*kind == VarKind::kTensor) return in.Error("a control variable has no type");
      PENSTOCK_RETURN_IF_ERROR(in.Open("<"));
      PENSTOCK_ASSIGN_OR_RETURN(var.type, ParseTensorType(in));
      PENSTOCK_RETURN_IF_ERROR(in.Close(">"));
      var.type->has_lod_level = *kind != VarKind::kSelectedRows;
    }
  }
  return in.TakeIf("of") ? ParseParts(in, var) : OkStatus();
}

bool AtDeclaration(Cursor& in) {
  if (in.Peek().kind != TokenKind::kName || !IsDeclarationWord(in.Peek().text)) return false;
  const TokenKind next = in.PeekSecond().kind;
  return next == TokenKind::kName || next == TokenKind::kString;
}

Result<Var> ParseDeclaration(Cursor& in) {
  Var var;
  const std::string word = in.Take().text;
  var.persistable = word == kParamWord || word == kPersistWord;
  var.facts.is_parameter = word == kParamWord;
  var.facts.is_data = word == kDataWord;
  PENSTOCK_ASSIGN_OR_RETURN(var.name, in.Name("the variable's name"));
  PENSTOCK_RETURN_IF_ERROR(in.Expect(":"));
  PENSTOCK_RETURN_IF_ERROR(ParseVarType(in, var));
  std::set<std::string> flags;
  while (in.Peek().kind == TokenKind::kName) {
    const Token at = in.Take();
    if (!flags.insert(at.text).second) return in.ErrorAt(at, StrCat("flag ", at.text, " is given twice"));
    PENSTOCK_RETURN_IF_ERROR(ParseFlag(in, at.text, at, var));
  }
  PENSTOCK_RETURN_IF_ERROR(in.EndOfStatement());
  return var;
}

}  // namespace penstock
