// arg_max, arg_min: the indices of the largest or smallest elements along an axis.
#include <cmath>

#include "framework/op/op_registry.h"
#include "operators/common/axis_view.h"
#include "operators/common/element_type.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
along dimension `axis` of X. The dimension is removed, or becomes 1 with keepdims. Of equal elements, the
first is taken. dtype is the element type of Out, numbered as in Fluid; -1 is i64.)";

Status InferArg(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c, x, c.Attr<std::int64_t>("axis")));
  if (x[axis] == 0) return c.Error("extent ", axis, " of X (", x, ") has no elements to choose from");
  const int dtype = c.Attr<int>("dtype");
  if (dtype >= 0 && !IsDType(dtype)) return c.Error("dtype (", dtype, ") must be -1 or the number of a type");
  Shape out;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) {
      out.Append(x[i]);
    } else if (c.Attr<bool>("keepdims")) {
      out.Append(1);
    }
  }
  if (out.rank() == 0) out.Append(1);
  c.SetDType("Out", dtype < 0 ? DType::kInt64 : static_cast<DType>(dtype));
  return c.SetShape("Out", out);
}

struct Larger {
  template <typename T>
  static bool Of(T x, T best) {
    return x > best;
  }
};
struct Smaller {
  template <typename T>
  static bool Of(T x, T best) {
    return x < best;
  }
};

template <typename Better>
struct Arg {
  template <typename Device, typename T>
  class Forward : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      k.Bind(x_, out_);
      PENSTOCK_ASSIGN_OR_RETURN(const int axis, ResolveAxis(k, k[x_].shape, k.Attr<std::int64_t>("axis")));
      view_ = ViewAlong(k[x_].shape, axis);
      if (view_.width == 0)
        return k.Error("extent ", axis, " of X (", k[x_].shape, ") has no elements to choose from");
      const bool known = VisitElementType(k[out_].dtype, [this]<typename Index>(std::type_identity<Index>) {
        find_ = &Forward::Find<Index>;
      });
      return known ? OkStatus()
                   : k.Error("dtype (", DTypeName(k[out_].dtype), ") is not an element type of tensors");
    }
    Status Run(KernelRun& k) override {
      (this->*find_)(k);
      return OkStatus();
    }

   private:
    static bool IsNan(T x) { return x != x; }

    template <typename Index>
    void Find(KernelRun& k) {
      const T* const x = k[x_].template Data<T>();
      Index* const out = k[out_].template Data<Index>();
      view_.ForEachLine([&](Dim begin, Dim line) {
        Dim best = 0;
        for (Dim i = 1; i < view_.width && !IsNan(x[begin + best * view_.inner]); ++i) {
          const T candidate = x[begin + i * view_.inner];
          if (IsNan(candidate) || Better::Of(candidate, x[begin + best * view_.inner])) best = i;
        }
        out[line] = ConvertTo<Index>(best);
      });
    }

    In<"X"> x_;
    Out<"Out"> out_;
    AxisView view_;
    void (Forward::*find_)(KernelRun&) = nullptr;  // by Out's type
  };
};

template <typename Better>
void Add(OpRegistry& ops, const std::string& type, const std::string& which) {
  ops.Add(type)
      .Doc(StrCat("The indices of the ", which, " elements along an axis."),
           StrCat("Out = the index of the ", which, " element\n", kDoc))
      .Input("X", "of rank 1 or more",
             OneOfTypes<float, double, std::uint8_t, std::int16_t, std::int32_t, std::int64_t>())
      .Output("Out", "indices along the axis", AnyType())
      .RequiredAttr("axis", AttrKind::kLong, "the axis to search")
      .Attr("keepdims", false, "whether the dimension becomes 1 instead of being removed")
      .Attr("dtype", -1, "the element type of Out")
      .Nan("the first NaN is both the largest and the smallest element.")
      .InferShape(InferArg)
      .template Kernel<Cpu, Arg<Better>::template Forward, float, double, std::uint8_t, std::int16_t,
                       std::int32_t, std::int64_t>()
      .NoGrad();
}

}  // namespace

void RegisterArgMax(OpRegistry& ops) {
  Add<Larger>(ops, "arg_max", "largest");
  Add<Smaller>(ops, "arg_min", "smallest");
}

}  // namespace penstock
