// less_than and similar comparisons, logical_not, _and, _or, _xor: elementwise booleans.
#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/math/broadcast.h"

namespace penstock {
namespace {

constexpr char kCompareDoc[] = R"(
If the shapes differ, the dimensions of the operand of lower rank are aligned with those of the other,
starting at `axis` (-1: with the last ones). An operand is repeated along dimensions that it lacks or that
are 1.)";

constexpr char kLogicalDoc[] = R"(
X and Y must have the same shape.)";

struct Less {
  template <typename T>
  static bool Of(T x, T y) {
    return x < y;
  }
};
struct LessEqual {
  template <typename T>
  static bool Of(T x, T y) {
    return x <= y;
  }
};
struct Greater {
  template <typename T>
  static bool Of(T x, T y) {
    return x > y;
  }
};
struct GreaterEqual {
  template <typename T>
  static bool Of(T x, T y) {
    return x >= y;
  }
};
struct Equal {
  template <typename T>
  static bool Of(T x, T y) {
    return x == y;
  }
};
struct NotEqual {
  template <typename T>
  static bool Of(T x, T y) {
    return x != y;
  }
};
struct And {
  static bool Of(bool x, bool y) { return x && y; }
};
struct Or {
  static bool Of(bool x, bool y) { return x || y; }
};
struct Xor {
  static bool Of(bool x, bool y) { return x != y; }
};

// Out has the larger shape, the LoD of X, and booleans.
Status InferTruth(InferContext& c, int axis) {
  const Result<AlignedShapes> shapes = AlignShapes(c.ShapeOf("X"), c.ShapeOf("Y"), axis);
  if (!shapes.ok()) return c.Error(shapes.status().message());
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Out"));
  return c.SetShape("Out", shapes->out);
}

Status InferCompare(InferContext& c) { return InferTruth(c, c.Attr<int>("axis")); }

Status InferLogical(InferContext& c) {
  if (Compatible(c.ShapeOf("X"), c.ShapeOf("Y"))) return InferTruth(c, -1);
  return c.Error("Y (", c.ShapeOf("Y"), ") must have the shape of X (", c.ShapeOf("X"), ")");
}

template <typename Test>
struct Truth {
  template <typename Device, typename T>
  class Forward : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      k.Bind(x_, y_, out_);
      const int axis = k.op().FindAttr("axis") == nullptr ? -1 : k.Attr<int>("axis");
      PENSTOCK_ASSIGN_OR_RETURN(loops_, LoopsOver(k, k[x_].shape, k[y_].shape, axis));
      return OkStatus();
    }
    Status Run(KernelRun& k) override {
      const T* const x = k[x_].template Data<T>();
      const T* const y = k[y_].template Data<T>();
      bool* const out = k[out_].template Data<bool>();
      const Dim x_step = loops_.x_moves() ? 1 : 0, y_step = loops_.y_moves() ? 1 : 0;
      loops_.ForEachRow([&](Dim o, Dim xo, Dim yo) {
        for (Dim i = 0; i < loops_.inner(); ++i)
          out[o + i] = Test::Of(x[xo + i * x_step], y[yo + i * y_step]);
      });
      return OkStatus();
    }

   private:
    In<"X"> x_;
    In<"Y"> y_;
    Out<"Out"> out_;
    BroadcastLoops loops_;
  };
};

template <typename Device, typename T>
class NotKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    const std::int64_t count = k[x_].count();
    for (std::int64_t i = 0; i < count; ++i) out[i] = !x[i];
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
};

template <typename Test>
void AddCompare(OpRegistry& ops, const std::string& type, const std::string& sign) {
  ops.Add(type)
      .Doc(StrCat("Whether X ", sign, " Y, element by element."),
           StrCat("Out = X ", sign, " Y\n", kCompareDoc))
      .Input("X", "left operand", AnyType())
      .Input("Y", "right operand; its shape is aligned with X's by `axis`", SameTypeAs("X"))
      .Output("Out", "booleans, in the broadcast shape", Only(DType::kBool))
      .Attr("axis", -1,
            "the dimension of X with which the first dimension of Y is aligned; -1: the last dimensions are "
            "aligned",
            AtLeast(-1))
      .Attr("force_cpu", false, kNoEffect)
      .Nan("comparisons with NaN are false, except not_equal.")
      .InferShape(InferCompare)
      .Elementwise()
      .KernelTypeFrom("X")
      .template Kernel<Cpu, Truth<Test>::template Forward, float, double, std::int32_t, std::int64_t, bool>()
      .NoGrad();
}

template <typename Test>
void AddLogical(OpRegistry& ops, const std::string& type, std::string summary, const std::string& formula) {
  ops.Add(type)
      .Doc(std::move(summary), formula + "\n" + kLogicalDoc)
      .Input("X", "left operand", Only(DType::kBool))
      .Input("Y", "right operand", Only(DType::kBool))
      .Output("Out", "booleans, shaped like X", Only(DType::kBool))
      .InferShape(InferLogical)
      .Elementwise()
      .template Kernel<Cpu, Truth<Test>::template Forward, bool>()
      .NoGrad();
}

}  // namespace

void RegisterCompare(OpRegistry& ops) {
  AddCompare<Less>(ops, "less_than", "<");
  AddCompare<LessEqual>(ops, "less_equal", "<=");
  AddCompare<Greater>(ops, "greater_than", ">");
  AddCompare<GreaterEqual>(ops, "greater_equal", ">=");
  AddCompare<Equal>(ops, "equal", "==");
  AddCompare<NotEqual>(ops, "not_equal", "!=");
  AddLogical<And>(ops, "logical_and", "The logical and of X and Y.", "Out = X and Y");
  AddLogical<Or>(ops, "logical_or", "The logical or of X and Y.", "Out = X or Y");
  AddLogical<Xor>(ops, "logical_xor", "The exclusive or of X and Y.", "Out = X != Y");
  ops.Add("logical_not")
      .Doc("The logical negation of each element.", "Out = not X")
      .Input("X", "any shape", Only(DType::kBool))
      .Output("Out", "booleans, shaped like X", Only(DType::kBool))
      .InferShape(SameShape("X", "Out"))
      .Elementwise()
      .Kernel<Cpu, NotKernel, bool>()
      .NoGrad();
}

}  // namespace penstock
