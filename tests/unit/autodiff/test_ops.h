// A few ops with minimal declarations for gradients and optimizers, so that tests of the framework do not
// depend on Penstock's ops.
#pragma once

#include <string>
#include <string_view>

#include "framework/op/op_registry.h"

namespace penstock::test {

// Joins lines of expected text that continue after four spaces.
inline std::string Unfolded(std::string_view text) {
  constexpr std::string_view kFold = "\n    ";
  std::string out;
  for (std::size_t at = text.find(kFold); at != std::string_view::npos; at = text.find(kFold)) {
    out.append(text.substr(0, at));
    out.push_back(' ');
    text.remove_prefix(at + kFold.size());
  }
  out.append(text);
  return out;
}

inline void AddForwardOps(OpRegistry& ops) {
  ops.Add("f")  // one input, one output, an attribute
      .Input("X", "", Floats())
      .Output("Out", "", SameTypeAs("X"))
      .Attr("times", 2, "")
      .InferShape(SameShape("X", "Out"))
      .Grad({.reads = {"X"}, .yields = {"X"}});
  ops.Add("times")
      .Input("X", "", Floats())
      .Input("Y", "", Floats())
      .Output("Out", "", SameTypeAs("X"))
      .InferShape(SameShape("X", "Out"))
      .Grad({.reads = {"X", "Y"}, .yields = {"X", "Y"}});
  ops.Add("mean")
      .Input("X", "", Floats())
      .Output("Out", "", SameTypeAs("X"))
      .InferShape([](InferContext& c) { return c.SetShape("Out", Shape({1})); })
      .Grad({.reads = {"X"}, .yields = {"X"}, .copies_attrs = false});
  ops.Add("cat")  // any number of inputs
      .Input("X", "", Floats(), Repeated())
      .Output("Out", "", SameTypeAs("X"))
      .InferShape(SameShape("X", "Out"))
      .Grad({.reads = {"X"}, .yields = {"X"}});
  ops.Add("halves")  // two outputs, whose gradients are both read
      .Input("X", "", Floats())
      .Output("Low", "", SameTypeAs("X"))
      .Output("High", "", SameTypeAs("X"))
      .InferShape([](InferContext& c) {
        PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Low"));
        return c.ShareAll("X", "High");
      })
      .Grad({.reads = {"X"}, .yields = {"X"}});
  ops.Add("extra")  // two outputs; its gradient op does not need the gradient of High
      .Input("X", "", Floats())
      .Output("Low", "", SameTypeAs("X"))
      .Output("High", "", SameTypeAs("X"), Optional())
      .InferShape([](InferContext& c) {
        PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Low"));
        return c.ShareAll("X", "High");
      })
      .Grad({.reads = {"X"}, .yields = {"X"}});
  ops.Add("round")  // no gradient flows back
      .Input("X", "", Floats())
      .Output("Out", "", SameTypeAs("X"))
      .InferShape(SameShape("X", "Out"))
      .NoGrad();
  ops.Add("sort")  // does not declare whether it has a gradient
      .Input("X", "", Floats())
      .Output("Out", "", SameTypeAs("X"))
      .InferShape(SameShape("X", "Out"));
}

inline Result<std::vector<Op>> SumGradient(const GradRequest& request) {
  std::vector<Op> grads;
  for (const std::string& x : request.forward.Input("X")) {
    const std::string name = request.grad_of(x);
    if (name.empty()) continue;
    Op scale("scale");
    scale.AddInput("X", {request.grad_of(request.forward.OutputName("Out"))}).AddOutput("Out", {name});
    grads.push_back(scale.Set("scale", 1.0f));
  }
  return grads;
}

inline void AddFrameworkOps(OpRegistry& ops) {
  ops.Add("fill_constant")
      .Output("Out", "", TypeFromAttr("dtype"))
      .Attr("shape", std::vector<std::int64_t>(), "")
      .Attr("dtype", 5, "")
      .Attr("value", 0.0f, "")
      .Attr("force_cpu", false, "")
      .InferShape([](InferContext& c) {
        return c.SetShape("Out", Shape(c.Attr<std::vector<std::int64_t>>("shape")));
      })
      .NoGrad();
  ops.Add("fill_zeros_like")
      .Input("X", "", AnyType())
      .Output("Out", "", SameTypeAs("X"))
      .InferShape(SameShape("X", "Out"))
      .NoGrad();
  ops.Add("sum")
      .Input("X", "", Floats(), Repeated())
      .Output("Out", "", SameTypeAs("X"))
      .Attr("use_mkldnn", false, "")
      .InferShape(SameShape("X", "Out"))
      .GradMadeBy(SumGradient);
  ops.Add("scale")
      .Input("X", "", Floats())
      .Input("ScaleTensor", "", Floats(), Optional())
      .Output("Out", "", SameTypeAs("X"))
      .Attr("scale", 1.0f, "")
      .Attr("bias", 0.0f, "")
      .InferShape(SameShape("X", "Out"))
      .GradMadeBy(SumGradient);
  ops.Add("sign")
      .Input("X", "", Floats())
      .Output("Out", "", SameTypeAs("X"))
      .InferShape(SameShape("X", "Out"))
      .NoGrad();
}

inline void AddOptimizers(OpRegistry& ops) {
  ops.Add("sgd")
      .Input("Param", "", Floats())
      .Input("Grad", "", Floats())
      .Input("LearningRate", "", Floats())
      .Output("ParamOut", "", SameTypeAs("Param"))
      .InferShape(SameShape("Param", "ParamOut"))
      .Optimizes("Param", "Grad");
  // State of both kinds: one of the parameter's shape, and one number that the op only reads.
  ops.Add("decaying")
      .Input("Param", "", Floats())
      .Input("Grad", "", Floats())
      .Input("LearningRate", "", Floats())
      .Input("Moment", "", Floats())
      .Input("Pow", "", Floats())
      .Output("ParamOut", "", SameTypeAs("Param"))
      .Output("MomentOut", "", SameTypeAs("Param"))
      .Attr("beta", 0.5f, "")
      .InferShape(SameShape("Param", "ParamOut"))
      .Optimizes("Param", "Grad")
      .State({.slot = "Moment", .accumulator = "moment"})
      .State({.slot = "Pow",
              .slicing = StateSlicing::kWhole,
              .accumulator = "pow",
              .initial_attr = "beta",
              .output = "-",
              .device = "cpu",
              .advance_attr = "beta",
              .advance_scope = "decay"});
}

inline const OpRegistry& TestOps() {
  static const OpRegistry& ops = []() -> const OpRegistry& {
    auto* made = new OpRegistry();
    AddForwardOps(*made);
    AddFrameworkOps(*made);
    AddOptimizers(*made);
    PENSTOCK_CHECK(made->Finish().ok(), "the test ops are well declared");
    return *made;
  }();
  return ops;
}

}  // namespace penstock::test
