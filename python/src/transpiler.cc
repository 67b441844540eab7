// Transpile: programs and a configuration in, the programs of all roles out.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operators/all_ops.h"
#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/program_box.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

Kind KindOfText(const std::string& text) {
  if (text == "nccl2") return Kind::kNccl2;
  if (text == "collective") return Kind::kCollective;
  if (text == "geo") return Kind::kGeo;
  if (text == "pserver") return Kind::kPserver;
  throw StatusError(InvalidArgument("E-plan-kind", "mode is ", Quote(text),
                                    "; it must be pserver, nccl2, collective or geo"));
}

Placement PlacementOfText(const std::string& text) {
  if (text == "RoundRobin") return Placement::kRoundRobin;
  if (text == "HashName") return Placement::kHashName;
  throw StatusError(InvalidArgument("E-plan-placement", "placement is ", Quote(text),
                                    "; it must be RoundRobin or HashName"));
}

Dialect DialectOfText(const std::string& text) {
  if (text == "fluid-1.8") return Dialect::kFluid18;
  throw StatusError(InvalidArgument("E-plan-compat", "compat is ", Quote(text), "; it must be fluid-1.8"));
}

std::shared_ptr<ProgramBox> Box(const Program& program) {
  return std::make_shared<ProgramBox>(ProgramBox{program});
}

RoleSet Run(const ProgramBox& main, const ProgramBox& startup, const TranspileConfig& config) {
  const Program main_now = main.program;
  const Program startup_now = startup.program;
  const py::gil_scoped_release release;
  return Take(Transpile(AllOps(), main_now, startup_now, config));
}

}  // namespace

void BindTranspiler(py::module_& m) {
  py::class_<TranspileConfig>(m, "TranspileConfig")
      .def(py::init<>())
      .def_property("kind", nullptr,
                    [](TranspileConfig& c, const std::string& text) { c.kind = KindOfText(text); })
      .def_property("placement", nullptr,
                    [](TranspileConfig& c, const std::string& text) { c.placement = PlacementOfText(text); })
      .def_property("dialect", nullptr,
                    [](TranspileConfig& c, const std::string& text) { c.dialect = DialectOfText(text); })
      .def_readwrite("trainers", &TranspileConfig::trainers)
      .def_readwrite("trainer_ids", &TranspileConfig::trainer_ids)
      .def_readwrite("pservers", &TranspileConfig::pservers)
      .def_readwrite("slice_params", &TranspileConfig::slice_params)
      .def_readwrite("min_block_size", &TranspileConfig::min_block_size)
      .def_readwrite("allow_small_blocks", &TranspileConfig::allow_small_blocks)
      .def_readwrite("sync_mode_argument", &TranspileConfig::sync_mode_argument)
      .def_readwrite("sync_mode_field", &TranspileConfig::sync_mode_field)
      .def_readwrite("runtime_split_send_recv", &TranspileConfig::runtime_split_send_recv)
      .def_readwrite("half_async", &TranspileConfig::half_async)
      .def_readwrite("completely_not_async", &TranspileConfig::completely_not_async)
      .def_readwrite("dc_asgd", &TranspileConfig::dc_asgd);
  py::class_<RoleSet>(m, "_RoleSet")
      .def_property_readonly("plan", [](const RoleSet& roles) { return PrintPlan(roles.plan); })
      // [(trainer id, main, start-up)]
      .def_property_readonly(
          "trainers",
          [](const RoleSet& roles) {
            py::list out;
            for (const TrainerRole& role : roles.trainers) {
              out.append(py::make_tuple(role.trainer_id, Box(role.main), Box(role.startup)));
            }
            return out;
          })
      // [(address, main, start-up)]
      .def_property_readonly("pservers", [](const RoleSet& roles) {
        py::list out;
        for (const PserverRole& role : roles.pservers) {
          out.append(py::make_tuple(role.address, Box(role.main), Box(role.startup)));
        }
        return out;
      });
  m.def("transpile", &Run);
}

}  // namespace penstock::python
