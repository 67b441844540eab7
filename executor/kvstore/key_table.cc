#include "executor/kvstore/key_table.h"

#include <cstring>
#include <new>

#include "framework/base/strings.h"

namespace penstock::kvstore {

Result<std::shared_ptr<const KeyTable>> KeyTable::Make(const TableFacts& facts, TableSpec spec,
                                                       const OpRegistry& ops) {
  if (facts.dtype != DType::kFp32 && facts.dtype != DType::kFp64) {
    return InvalidArgument("E-kv-key-type", "table ", Quote(facts.name), " is of ", DTypeName(facts.dtype),
                           "; rows of a table are float32 or float64");
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      const KeyUpdate update,
      UpdateProgram(spec.optimizer,
                    {.key = facts.name, .dtype = facts.dtype, .shape = {1, facts.width}, .rows = true}));
  std::shared_ptr<KeyTable> made(new KeyTable(facts, std::move(spec)));
  // Its rule takes the numbers of a step as Update gives them; no other op's does.
  const OpDef* const def = ops.Find("keyed_update");
  const std::vector<OpEntry>& steps = update.program.block(KeyUpdate::kUpdate).ops();
  if (def != nullptr && steps.size() == 1 && steps.front().op->type() == def->type())
    made->rule_ = RowRuleOf(*def, *steps.front().op, facts.dtype);
  if (made->rule_ == nullptr) {
    return Unimplemented("E-kv-table-optimizer", "table ", Quote(facts.name), ": ",
                         made->spec_.optimizer.name,
                         " also changes rows that a gradient does not list, which a table does not do")
        .With("use adagrad, ftrl, sgd or adam (with lazy_update), or test");
  }
  made->columns_.push_back(update.param);
  made->columns_.insert(made->columns_.end(), update.states.begin(), update.states.end());
  return std::shared_ptr<const KeyTable>(std::move(made));
}

Result<table::RowTable> KeyTable::MakeRows(Scope& scope) const {
  std::vector<table::RowTable::ColumnSource> columns;
  std::vector<std::size_t> numbers;
  for (const std::string& name : columns_) {
    Variable* const variable = scope.FindOrCreate(name);
    auto& rows = variable->As<SelectedRows>();
    rows.value = Tensor(facts_.dtype, Shape({0, facts_.width}));
    if (columns.empty()) rows.start = spec_.start.RowsOf(facts_.name, facts_.dtype);
    numbers.push_back(columns.size());
    columns.push_back({name, variable});
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      table::RowTable made,
      table::RowTable::Make(Shape({1, facts_.width}), columns, table::RowTable::Layout::kRows, spec_.policy));
  made.UseRule(rule_, numbers);
  return made;
}

void KeyTable::Update(std::span<SelectedRows* const> gradients, std::uint64_t count,
                      table::RowTable& rows) const {
  const auto number = static_cast<std::int64_t>(count);
  KeyNumbers numbers = NumbersAt(spec_.optimizer, facts_.name, number, number);
  std::byte* const whole[] = {
      reinterpret_cast<std::byte*>(&numbers.rate), reinterpret_cast<std::byte*>(&numbers.decay),
      reinterpret_cast<std::byte*>(&numbers.count), reinterpret_cast<std::byte*>(&numbers.rescale)};
  rows.Update({.gradients = gradients, .whole = whole});
}

Result<std::unique_ptr<LocalTable>> LocalTable::Make(const TableFacts& facts, TableSpec spec,
                                                     const OpRegistry& ops) {
  PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<const KeyTable> table,
                            KeyTable::Make(facts, std::move(spec), ops));
  std::unique_ptr<LocalTable> made(new LocalTable(facts, std::move(table)));
  PENSTOCK_ASSIGN_OR_RETURN(table::RowTable rows, made->table_->MakeRows(made->scope_));
  made->rows_ = std::make_unique<table::RowTable>(std::move(rows));
  return made;
}

Status LocalTable::Check(std::size_t ids, const Tensor& array) const {
  const Shape shape({static_cast<Dim>(ids), facts_.width});
  if (array.dtype() == facts_.dtype && array.shape() == shape) return OkStatus();
  return InvalidArgument("E-kv-array", ids, " rows of table ", Quote(facts_.name), " are ",
                         DTypeName(facts_.dtype), shape, ", the array is ", DTypeName(array.dtype()),
                         array.shape());
}

Status LocalTable::Lookup(std::span<const std::int64_t> ids, const Tensor& out) const {
  PENSTOCK_RETURN_IF_ERROR(Check(ids.size(), out));
  const std::lock_guard lock(mutex_);
  rows_->Read(ids, -1, out.raw());
  return OkStatus();
}

Status LocalTable::Push(std::span<const std::int64_t> ids, const Tensor& gradients) {
  PENSTOCK_RETURN_IF_ERROR(Check(ids.size(), gradients));
  SelectedRows copy{.rows = {ids.begin(), ids.end()}, .height = 1, .value = gradients.Clone()};
  SelectedRows* const all[] = {&copy};
  const std::lock_guard lock(mutex_);
  try {
    table_->Update(all, updates_ + 1, *rows_);
  } catch (const std::bad_alloc&) {
    return FailedPrecondition("E-run-memory", "not enough memory for more than the ", rows_->row_count(),
                              " rows of table ", Quote(facts_.name));
  }
  ++updates_;
  while (rows_->Sweep()) {
  }
  return OkStatus();
}

std::uint64_t LocalTable::updates() const {
  const std::lock_guard lock(mutex_);
  return updates_;
}

}  // namespace penstock::kvstore
