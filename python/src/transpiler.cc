// Bindings of Transpile, which makes the programs of all roles from programs and a configuration.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/runtime/core_threads.h"
#include "framework/text/policies.h"
#include "operators/all_ops.h"
#include "python/src/bind.h"
#include "python/src/dispatcher.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/program_box.h"
#include "python/src/settings.h"
#include "transpiler/pipeline/check_role_set.h"
#include "transpiler/pipeline/data_parallel.h"
#include "transpiler/pipeline/transpile.h"
#include "transpiler/pipeline/transpile_together.h"
#include "transpiler/plan/deal.h"
#include "transpiler/plan/exchanged.h"
#include "transpiler/plan/names.h"
#include "transpiler/plan/settings.h"
#include "transpiler/plan/slicing.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

plan::Kind KindOfText(const std::string& text) {
  if (text == "nccl2") return plan::Kind::kNccl2;
  if (text == "collective") return plan::Kind::kCollective;
  if (text == "geo") return plan::Kind::kGeo;
  if (text == "pserver") return plan::Kind::kPserver;
  throw StatusError(InvalidArgument("E-plan-kind", "mode is ", Quote(text),
                                    "; it must be pserver, nccl2, collective or geo"));
}

plan::Dialect DialectOfText(const std::string& text) {
  if (text == "fluid-1.8") return plan::Dialect::kFluid18;
  throw StatusError(InvalidArgument("E-plan-compat", "compat is ", Quote(text), "; it must be fluid-1.8"));
}

std::shared_ptr<ProgramBox> Box(const Program& program) {
  return std::make_shared<ProgramBox>(ProgramBox{program});
}

void RequirePositive(std::int64_t count) {
  if (count < 1) throw StatusError(InvalidArgument("E-plan-count", "plan: must be at least 1, not ", count));
}

// A configuration, and the exception that its dispatcher raised if it is a Python object.
struct ConfigBox {
  plan::TranspileConfig config;
  Raised raised = std::make_shared<std::exception_ptr>();
};

template <typename T>
auto Reads(T plan::TranspileConfig::*field) {
  return [field](const ConfigBox& box) { return box.config.*field; };
}
template <typename T>
auto Writes(T plan::TranspileConfig::*field) {
  return [field](ConfigBox& box, T value) { box.config.*field = std::move(value); };
}

// A verified set of roles, and the findings of the check that are not errors.
struct ProvenRoles {
  RoleSet roles;
  std::vector<std::string> warnings;
};

// Returns the warnings of the check; its first error is an error.
Result<std::vector<std::string>> Proof(const RoleSet& roles, const Program& main, const Program& startup,
                                       CoreThreads& threads) {
  const check::CheckReport report = CheckRoleSet(AllOps(), roles, main, startup, &threads);
  PENSTOCK_RETURN_IF_ERROR(FirstError(report));
  std::vector<std::string> warnings;
  for (const check::Finding& finding : report.findings) {
    if (finding.severity == check::Severity::kWarning) warnings.push_back(finding.ToString());
  }
  return warnings;
}

Result<ProvenRoles> TranspileAndCheck(const Program& main, const Program& startup,
                                      const plan::TranspileConfig& config) {
  CoreThreads threads;
  PENSTOCK_ASSIGN_OR_RETURN(RoleSet roles, Transpile(AllOps(), main, startup, config, {.threads = &threads}));
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<std::string> warnings, Proof(roles, main, startup, threads));
  return ProvenRoles{std::move(roles), std::move(warnings)};
}

ProvenRoles Run(const ProgramBox& main, const ProgramBox& startup, const ConfigBox& box) {
  const Program main_now = main.program;
  const Program startup_now = startup.program;
  *box.raised = nullptr;
  Result<ProvenRoles> proven = [&] {
    const GilReleased release;
    return TranspileAndCheck(main_now, startup_now, box.config);
  }();
  if (*box.raised) std::rethrow_exception(std::exchange(*box.raised, nullptr));
  return Take(std::move(proven));
}

// One role set per program of a job, in the order of the programs.
std::vector<ProvenRoles> RunTogether(const std::vector<std::shared_ptr<ProgramBox>>& mains,
                                     const std::vector<std::shared_ptr<ProgramBox>>& startups,
                                     const std::vector<std::shared_ptr<ConfigBox>>& boxes) {
  std::vector<JobProgram> programs;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    programs.push_back({mains.at(i)->program, startups.at(i)->program, boxes[i]->config});
    *boxes[i]->raised = nullptr;
  }
  Result<std::vector<ProvenRoles>> proven = [&]() -> Result<std::vector<ProvenRoles>> {
    const GilReleased release;
    CoreThreads threads;
    PENSTOCK_ASSIGN_OR_RETURN(std::vector<RoleSet> roles,
                              TranspileTogether(AllOps(), programs, {.threads = &threads}));
    std::vector<ProvenRoles> out;
    for (std::size_t i = 0; i < roles.size(); ++i) {
      PENSTOCK_ASSIGN_OR_RETURN(std::vector<std::string> warnings,
                                Proof(roles[i], programs[i].main, programs[i].startup, threads));
      out.push_back({std::move(roles[i]), std::move(warnings)});
    }
    return out;
  }();
  for (const auto& box : boxes)
    if (*box->raised) std::rethrow_exception(std::exchange(*box->raised, nullptr));
  return Take(std::move(proven));
}

GradientReduction ReductionOfGradients(const std::string& text) {
  if (text == "mean") return GradientReduction::kMean;
  if (text == "shares") return GradientReduction::kShares;
  return text == "adasum" ? GradientReduction::kAdasum : GradientReduction::kSum;
}

// (the program that a rank runs in each step, the program that it runs once before the first step)
std::pair<std::shared_ptr<ProgramBox>, std::shared_ptr<ProgramBox>> RunDataParallel(
    const ProgramBox& main, std::vector<std::string> addresses, int rank, int rings,
    const std::string& reduction, bool halved, bool sync_batch_norm, int group_ranks,
    const std::optional<std::shared_ptr<ProgramBox>>& startup, int runs_per_update, bool places) {
  const Program main_now = main.program;
  DataParallelConfig config{.addresses = std::move(addresses),
                            .rank = rank,
                            .rings = rings,
                            .reduction = ReductionOfGradients(reduction),
                            .halved = halved,
                            .sync_batch_norm = sync_batch_norm,
                            .group_ranks = group_ranks,
                            .runs_per_update = runs_per_update,
                            .places = places};
  if (startup) config.startup = (*startup)->program;
  Result<DataParallel> made = [&] {
    const GilReleased release;
    return MakeDataParallel(AllOps(), main_now, config);
  }();
  const DataParallel programs = Take(std::move(made));
  return {Box(programs.main), Box(programs.begin)};
}

// The addresses of the trainers whose gradients the runner of the program must add up: those of the plan of
// mode nccl2, if the program has gradients that it does not exchange itself. Empty for other programs.
std::vector<std::string> TrainersToJoin(const ProgramBox& box) {
  const Program& program = box.program;
  if (program.meta().plan.empty()) return {};
  const plan::PlacementPlan made = Take(plan::ParsePlan(program.meta().plan));
  if (made.mode != plan::Mode::kNccl2 || made.ranks.addresses.size() < 2) return {};
  if (!plan::Exchanged(program).gradients.empty()) return {};
  const auto& ops = program.main().ops();
  const bool trains = std::any_of(ops.begin(), ops.end(), [](const OpEntry& entry) {
    return Has(entry.op->role(), OpRole::kBackward) && !entry.op->RolePairs().empty();
  });
  return trains ? made.ranks.addresses : std::vector<std::string>();
}

// [(parameter, gradient, element type, shape, sparse, prefetched, [(slice, rows from, to, address)])]
py::list PlannedParams(const plan::PlacementPlan& plan) {
  py::list out;
  for (const plan::ParamPlacement& param : plan.params) {
    py::list slices;
    for (std::size_t i = 0; i < param.slices.size(); ++i) {
      const plan::Slice& slice = param.slices[i];
      slices.append(py::make_tuple(plan::ParamPieceName(param, static_cast<int>(i)), slice.row_begin,
                                   slice.row_end, plan.pservers[static_cast<std::size_t>(slice.pserver)]));
    }
    out.append(py::make_tuple(param.param, param.grad, std::string(DTypeName(param.dtype)),
                              std::vector<Dim>(param.shape.dims()), param.sparse, param.prefetched, slices));
  }
  return out;
}

// (parameters, trainers, steps between two exchanges) of a geo-SGD program that contains its plan; None for
// other programs.
py::object GeoPlanOf(const ProgramBox& box) {
  const std::string& text = box.program.meta().plan;
  if (text.empty()) return py::none();
  const plan::PlacementPlan plan = Take(plan::ParsePlan(text));
  if (plan.mode != plan::Mode::kGeo) return py::none();
  return py::make_tuple(PlannedParams(plan), plan.trainers, plan.push_every);
}

// The rules of placement and slicing, for callers that apply them directly.
void BindRules(py::module_& m) {
  m.def("pserver_of_name", [](const std::string& name, int pservers) {
    RequirePositive(pservers);
    return plan::PserverOfName(name, pservers);
  });
  m.def("balance_sizes", [](const std::vector<std::int64_t>& bytes, int pservers) {
    RequirePositive(pservers);
    return plan::BalanceSizes(bytes, pservers);
  });
  m.def("cut_rows", [](std::vector<Dim> shape, int parts, std::int64_t min_elements) {
    RequirePositive(parts);
    RequirePositive(min_elements);
    return plan::CutRows(Shape(std::move(shape)), parts, min_elements);
  });
}

void BindConfig(py::class_<ConfigBox, std::shared_ptr<ConfigBox>>& config) {
  config.def(py::init<>())
      .def_property("kind", nullptr,
                    [](ConfigBox& c, const std::string& text) { c.config.kind = KindOfText(text); })
      .def_property("trainer_addresses", Reads(&plan::TranspileConfig::trainer_addresses),
                    Writes(&plan::TranspileConfig::trainer_addresses))
      .def_property("current_addresses", Reads(&plan::TranspileConfig::current_addresses),
                    Writes(&plan::TranspileConfig::current_addresses))
      .def_property("dialect", nullptr,
                    [](ConfigBox& c, const std::string& text) { c.config.dialect = DialectOfText(text); })
      .def_property("trainers", Reads(&plan::TranspileConfig::trainers),
                    Writes(&plan::TranspileConfig::trainers))
      .def_property("trainer_ids", Reads(&plan::TranspileConfig::trainer_ids),
                    Writes(&plan::TranspileConfig::trainer_ids))
      .def_property("pservers", Reads(&plan::TranspileConfig::pservers),
                    Writes(&plan::TranspileConfig::pservers))
      .def_property("dispatcher", nullptr, [](ConfigBox& c, py::object make) {
        c.config.dispatcher = PythonDispatchers(std::move(make), c.raised);
      });
}

// One property for each row of the table of settings.
void BindSettings(py::class_<ConfigBox, std::shared_ptr<ConfigBox>>& config) {
  for (const plan::Setting& row : plan::Settings()) {
    const plan::Setting* setting = &row;
    config.def_property(
        std::string(row.name).c_str(),
        [setting](const ConfigBox& box) { return ObjectOf(setting->get(box.config)); },
        [setting](ConfigBox& box, const py::object& value) {
          SetSetting(*setting, setting->name, value, false, box.config);
        });
  }
  // Sets the setting `name`, which the user calls `called`. Unless `bounded`, transpile() checks the bound.
  config.def("give", [](ConfigBox& box, const std::string& name, const std::string& called,
                        const py::object& value, bool bounded) {
    const plan::Setting* setting = plan::FindSetting(name);
    PENSTOCK_CHECK(setting != nullptr, StrCat(name, " is no setting"));
    SetSetting(*setting, called, value, bounded, box.config);
  });
}

}  // namespace

void BindTranspiler(py::module_& m) {
  py::class_<ConfigBox, std::shared_ptr<ConfigBox>> config(m, "TranspileConfig");
  BindConfig(config);
  BindSettings(config);
  BindTableOfSettings(m);
  py::class_<ProvenRoles>(m, "_RoleSet")
      .def_readonly("warnings", &ProvenRoles::warnings)
      .def_property_readonly("plan",
                             [](const ProvenRoles& proven) { return plan::PrintPlan(proven.roles.plan); })
      .def_property_readonly("params",
                             [](const ProvenRoles& proven) { return PlannedParams(proven.roles.plan); })
      // Names of distributed tables.
      .def_property_readonly("tables",
                             [](const ProvenRoles& proven) {
                               std::vector<std::string> names;
                               for (const plan::TablePlacement& table : proven.roles.plan.tables)
                                 names.push_back(table.table);
                               return names;
                             })
      // [(trainer id, main, start-up)]
      .def_property_readonly(
          "trainers",
          [](const ProvenRoles& proven) {
            py::list out;
            for (const TrainerPrograms& role : proven.roles.trainers) {
              out.append(py::make_tuple(role.trainer_id, Box(role.main), Box(role.startup)));
            }
            return out;
          })
      // [(address, main, start-up)]
      .def_property_readonly("pservers", [](const ProvenRoles& proven) {
        py::list out;
        for (const PserverPrograms& role : proven.roles.pservers) {
          out.append(py::make_tuple(role.address, Box(role.main), Box(role.startup)));
        }
        return out;
      });
  m.def("transpile", &Run);
  m.def("transpile_together", &RunTogether);
  // None if more has changed.
  m.def("with_added",
        [](const ProgramBox& source, const ProgramBox& made,
           const ProgramBox& now) -> std::optional<std::shared_ptr<ProgramBox>> {
          const std::optional<Program> out = WithAdded(source.program, made.program, now.program);
          return out ? std::optional(Box(*out)) : std::nullopt;
        });
  m.def("data_parallel", &RunDataParallel, py::arg("main"), py::arg("addresses"), py::arg("rank"),
        py::arg("rings"), py::arg("reduction"), py::arg("halved") = false, py::arg("sync_batch_norm") = false,
        py::arg("group_ranks") = 0, py::arg("startup") = py::none(), py::arg("runs_per_update") = 1,
        py::arg("places") = false);
  m.def("geo_plan", &GeoPlanOf);
  // The text of a policy of rows in its usual form.
  m.def("row_policy", [](const std::string& text) { return Take(ParseRowPolicy(text)).ToString(); });
  // The program's on_uneven, such as "join"; "" if it has none.
  m.def("on_uneven_of", [](const ProgramBox& box) {
    return std::string(OnUnevenName(Take(ReadPolicies(box.program.meta())).on_uneven));
  });
  m.def("trainers_to_join", &TrainersToJoin);
  m.def("validate_config", [](const ConfigBox& box) { Check(plan::ValidateConfig(box.config)); });
  BindRules(m);
}

}  // namespace penstock::python
