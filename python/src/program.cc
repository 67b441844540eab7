// Bindings of ProgramDesc (its blocks and header), UniqueNames, and the small classes that are needed to
// build an op or a variable.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/ir/prune.h"
#include "framework/ir/unique_name.h"
#include "framework/runtime/core_threads.h"
#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "framework/wire/wire.h"
#include "python/src/bind.h"
#include "python/src/build_op.h"
#include "python/src/errors.h"
#include "python/src/program_class.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

void BindBlocks(ProgramClass& program) {
  program.def("num_blocks", [](const ProgramBox& box) { return box.program.block_count(); })
      .def("append_block", [](ProgramBox& box, int parent) { return box.program.AddBlock(parent).index(); })
      .def("parent", [](const ProgramBox& box, int block) { return box.ReadBlock(block).parent(); })
      .def("forward_block",
           [](const ProgramBox& box, int block) { return box.ReadBlock(block).forward_block(); })
      .def("ops",
           [](const ProgramBox& box, int block) {
             std::vector<std::uint64_t> ids;
             for (const OpEntry& op : box.ReadBlock(block).ops())
               ids.push_back(static_cast<std::uint64_t>(op.id));
             return ids;
           })
      .def("op_count", [](const ProgramBox& box, int block) { return box.ReadBlock(block).ops().size(); })
      .def("vars", [](const ProgramBox& box, int block) {
        std::vector<std::string> names;
        for (const VarRef& var : box.ReadBlock(block).vars()) names.push_back(var->name);
        return names;
      });
}

void BindMeta(ProgramClass& program) {
  program
      .def_property(
          "version", [](const ProgramBox& box) { return box.program.meta().version; },
          [](ProgramBox& box, std::int64_t version) { box.program.mutable_meta().version = version; })
      .def_property(
          "random_seed", [](const ProgramBox& box) { return box.program.meta().random_seed; },
          [](ProgramBox& box, std::int64_t seed) { box.program.mutable_meta().random_seed = seed; })
      .def_property_readonly("plan", [](const ProgramBox& box) { return box.program.meta().plan; })
      // Makes it a program of the same transpile.
      .def("take_job",
           [](ProgramBox& box, const ProgramBox& other) {
             box.program.mutable_meta().job_facts = other.program.meta().job_facts;
           })
      .def_property_readonly("content_id", [](const ProgramBox& box) { return box.program.content_id(); })
      .def("serialize_to_string",
           [](const ProgramBox& box) { return py::bytes(SerializeProgram(box.program)); })
      .def_static("parse",
                  [](const py::bytes& bytes) {
                    CoreThreads threads;
                    return std::make_shared<ProgramBox>(
                        ProgramBox{Take(ParseProgram(static_cast<std::string_view>(bytes), &threads))});
                  })
      .def_static("parse_text",
                  [](const std::string& text) {
                    return std::make_shared<ProgramBox>(ProgramBox{Take(ParseText(text, "text"))});
                  })
      .def("copy", [](const ProgramBox& box) { return std::make_shared<ProgramBox>(box); })
      .def("assign", [](ProgramBox& box, const ProgramBox& other) { box.program = other.program; })
      .def("clone_for_test",
           [](const ProgramBox& box) {
             return std::make_shared<ProgramBox>(ProgramBox{CloneForTest(box.program)});
           })
      .def("prune",
           [](const ProgramBox& box, const std::vector<std::string>& feeds,
              const std::vector<std::string>& targets, const std::vector<std::uint64_t>& target_ops) {
             std::set<OpId> ops;
             for (const std::uint64_t id : target_ops) ops.insert(static_cast<OpId>(id));
             return std::make_shared<ProgramBox>(ProgramBox{Take(PruneTo(box.program, feeds, targets, ops))});
           })
      .def("to_text",
           [](const ProgramBox& box) { return PrintProgram(box.program, PrintOptions::Everything()); })
      .def("to_string", [](const ProgramBox& box, bool all) {
        PrintOptions options;
        options.defaults = all;
        options.locations = all;
        return PrintProgram(box.program, options);
      });
}

}  // namespace

void BindProgram(py::module_& m) {
  py::class_<OpContext>(m, "OpContext")
      .def(py::init<>())
      .def_readwrite("role", &OpContext::role)
      .def_readwrite("role_var", &OpContext::role_var)
      .def_readwrite("name_scope", &OpContext::name_scope)
      .def_readwrite("device", &OpContext::device)
      .def_readwrite("location", &OpContext::location);
  py::class_<VarFacts>(m, "VarFacts")
      .def_readwrite("is_parameter", &VarFacts::is_parameter)
      .def_readwrite("trainable", &VarFacts::trainable)
      .def_readwrite("is_distributed", &VarFacts::is_distributed)
      .def_readwrite("learning_rate", &VarFacts::learning_rate)
      .def_readwrite("stop_gradient", &VarFacts::stop_gradient)
      .def_readwrite("is_data", &VarFacts::is_data);
  py::class_<UniqueNames, std::shared_ptr<UniqueNames>>(m, "UniqueNames")
      .def(py::init<std::string>(), py::arg("prefix") = "")
      .def("__call__", [](UniqueNames& names, const std::string& key) { return names.Generate(key); })
      .def("peek", &UniqueNames::Peek)
      .def("set", &UniqueNames::Set)
      .def_property_readonly("prefix", &UniqueNames::prefix);
  ProgramClass program(m, "ProgramDesc");
  program.def(py::init<>());
  BindBlocks(program);
  BindOps(program);
  BindVars(program);
  BindMeta(program);
}

}  // namespace penstock::python
