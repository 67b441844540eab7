// Ops of float16 that compute in float32, as text; runs no kernel.
#include "executor/graph/halves.h"

#include <gtest/gtest.h>

#include "framework/text/parser.h"
#include "framework/text/printer.h"

namespace penstock::exec {
namespace {

class AnyKernel : public Kernel {
 public:
  Status Prepare(KernelSetup&) override { return OkStatus(); }
  Status Run(KernelRun&) override { return OkStatus(); }
};

template <typename Device, typename T>
class FloatKernel : public AnyKernel {};

void DeclareHalves(OpRegistry& ops) {
  ops.Add("add")
      .Doc("Adds.", "")
      .Input("X", "", AnyType())
      .Input("Y", "", AnyType(), Optional())
      .Output("Out", "", AnyType())
      .Attr("dtype", 5, "")
      .InferShape(SameShape("X", "Out"))
      .Kernel<Cpu, FloatKernel, float>()
      .NoGrad();
  ops.Add("copy")
      .Doc("Copies.", "")
      .Input("X", "", AnyType())
      .Output("Out", "", AnyType())
      .InferShape(SameShape("X", "Out"))
      .KernelForAnyType<Cpu, AnyKernel>()
      .NoGrad();
}

// The ops of block 0 after the conversion, a line each, without the types of temporaries.
std::string Converted(const std::string& ops) {
  static const OpRegistry* registry = [] {
    auto* made = new OpRegistry;
    DeclareHalves(*made);
    const Status finished = made->Finish();
    PENSTOCK_CHECK(finished.ok(), finished.ToString());
    return made;
  }();
  const std::string text =
      StrCat("program\nblock 0 {\n  data x : f16[2]\n  data f : f32[2]\n  var h : f16[2]\n",
             "  var g : f16[2]\n", ops, "}\n");
  const Result<Program> program = ParseText(text, "in");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  const Result<Program> made = ComputeHalvesInFloat(*registry, *program, 0);
  PENSTOCK_CHECK(made.ok(), made.status().ToString());
  std::string out;
  for (std::string line : Split(PrintProgram(*made, {}), '\n')) {
    if (line.find(" = ") == std::string::npos) continue;
    for (const std::string type : {" : f16[2]", " : f32[2]"}) {
      if (const auto at = line.find(type); at != std::string::npos) line.erase(at, type.size());
    }
    out += line.substr(2) + "\n";
  }
  return out;
}

TEST(Halves, InputsAreConvertedOnceAndResultsRounded) {
  EXPECT_EQ(Converted("  h = add(X=x, Y=x)\n  g = add(X=h, Y=x)\n"),
            "x@FP32 = cast(X=x) {in_dtype=4, out_dtype=5}\n"
            "h@FP32 = add(X=x@FP32, Y=x@FP32)\n"
            "h = cast(X=h@FP32) {in_dtype=5, out_dtype=4}\n"
            "h@FP32 = cast(X=h) {in_dtype=4, out_dtype=5}\n"
            "g@FP32 = add(X=h@FP32, Y=x@FP32)\n"
            "g = cast(X=g@FP32) {in_dtype=5, out_dtype=4}\n");
}

TEST(Halves, AWrittenVariableIsConvertedAgain) {
  EXPECT_EQ(Converted("  h = add(X=x)\n  x = copy(X=h)\n  x = add(X=x) {dtype=4}\n"),
            "x@FP32 = cast(X=x) {in_dtype=4, out_dtype=5}\n"
            "h@FP32 = add(X=x@FP32)\n"
            "h = cast(X=h@FP32) {in_dtype=5, out_dtype=4}\n"
            "x = copy(X=h)\n"
            "x@FP32 = cast(X=x) {in_dtype=4, out_dtype=5}\n"
            "x@FP32 = add(X=x@FP32) {dtype=5}\n"
            "x = cast(X=x@FP32) {in_dtype=5, out_dtype=4}\n");
}

TEST(Halves, OpsOfFloat32AndOfAnyTypeStay) {
  const std::string ops = "  f = add(X=f, Y=f)\n  h = copy(X=x)\n";
  EXPECT_EQ(Converted(ops), "f = add(X=f, Y=f)\nh = copy(X=x)\n");
}

}  // namespace
}  // namespace penstock::exec
