// elementwise_add, _sub, _mul, _div, _max, _min, _pow, _mod, _floordiv: combine X and Y element by element,
// with broadcasting.
#include "operators/math/elementwise.h"

#include <cmath>

#include "operators/common/nan.h"
#include "operators/cuda/cuda_kernels.h"
#include "operators/math/elementwise_second_order.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
If the shapes differ, the dimensions of the operand of lower rank are aligned with those of the other,
starting at `axis` (-1: with the last ones). An operand is repeated along dimensions that it lacks or that
are 1. The gradient of a repeated element is the sum over its uses. Cost: one pass over Out.)";

struct Add {
  static constexpr bool kReadsOut = false, kDivides = false;
  template <typename T>
  static T Out(T x, T y) {
    return x + y;
  }
  template <typename T>
  static T Dx(T, T, T, T dout) {
    return dout;
  }
  template <typename T>
  static T Dy(T, T, T, T dout) {
    return dout;
  }
};

struct Sub {
  static constexpr bool kReadsOut = false, kDivides = false;
  template <typename T>
  static T Out(T x, T y) {
    return x - y;
  }
  template <typename T>
  static T Dx(T, T, T, T dout) {
    return dout;
  }
  template <typename T>
  static T Dy(T, T, T, T dout) {
    return -dout;
  }
};

struct Mul {
  static constexpr bool kReadsOut = false, kDivides = false;
  template <typename T>
  static T Out(T x, T y) {
    return x * y;
  }
  template <typename T>
  static T Dx(T, T y, T, T dout) {
    return dout * y;
  }
  template <typename T>
  static T Dy(T x, T, T, T dout) {
    return dout * x;
  }
};

struct Div {
  static constexpr bool kReadsOut = true, kDivides = true;
  template <typename T>
  static T Out(T x, T y) {
    // Besides division by zero, the only quotient of integers on which the processor traps.
    if constexpr (std::is_integral_v<T>) {
      if (y == -1)
        return static_cast<T>(std::make_unsigned_t<T>{0} - static_cast<std::make_unsigned_t<T>>(x));
    }
    return x / y;
  }
  template <typename T>
  static T Dx(T, T y, T, T dout) {
    return dout / y;
  }
  template <typename T>
  static T Dy(T, T y, T out, T dout) {
    return -dout * out / y;
  }
};

// If the elements are equal, the gradient goes to Y, as in Fluid.
struct Max {
  static constexpr bool kReadsOut = false, kDivides = false;
  template <typename T>
  static T Out(T x, T y) {
    return MaxOrNan(x, y);
  }
  template <typename T>
  static T Dx(T x, T y, T, T dout) {
    return Choose(x > y, dout, T{0}, x, y);
  }
  template <typename T>
  static T Dy(T x, T y, T, T dout) {
    return Choose(x <= y, dout, T{0}, x, y);
  }
};

struct Min {
  static constexpr bool kReadsOut = false, kDivides = false;
  template <typename T>
  static T Out(T x, T y) {
    return MinOrNan(x, y);
  }
  template <typename T>
  static T Dx(T x, T y, T, T dout) {
    return Choose(x < y, dout, T{0}, x, y);
  }
  template <typename T>
  static T Dy(T x, T y, T, T dout) {
    return Choose(x >= y, dout, T{0}, x, y);
  }
};

struct Pow {
  static constexpr bool kReadsOut = false, kDivides = false;
  template <typename T>
  static T Out(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(std::llrint(std::pow(static_cast<double>(x), static_cast<double>(y))));
    } else {
      return std::pow(x, y);
    }
  }
  template <typename T>
  static T Dx(T x, T y, T, T dout) {
    return dout * y * std::pow(x, y - T{1});
  }
  template <typename T>
  static T Dy(T x, T y, T, T dout) {
    return dout * std::log(x) * std::pow(x, y);
  }
};

// For integers the remainder has the sign of X, because the quotient is rounded towards zero; for floats it
// has the sign of Y.
struct Mod {
  static constexpr bool kDivides = true;
  template <typename T>
  static T Out(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      return y == -1 ? T{0} : x % y;  // the smallest integer divided by -1 traps
    } else {
      const T left = std::fmod(x, y);
      return left != T{0} && (left < T{0}) != (y < T{0}) ? left + y : left;
    }
  }
};

}  // namespace

template <>
inline constexpr bool kScalesRows<Mul> = true;
template <>
inline constexpr bool kScalesRows<Div> = true;

template <>
inline constexpr Slope kSlopeOfX<Add> = Slope::kDout;
template <>
inline constexpr Slope kSlopeOfY<Add> = Slope::kDout;
template <>
inline constexpr Slope kSlopeOfX<Sub> = Slope::kDout;
template <>
inline constexpr Slope kSlopeOfY<Sub> = Slope::kMinusDout;
template <>
inline constexpr Slope kSlopeOfX<Mul> = Slope::kDoutTimesOther;
template <>
inline constexpr Slope kSlopeOfY<Mul> = Slope::kDoutTimesOther;

Status InferElementwise(InferContext& c) {
  Result<AlignedShapes> shapes = AlignShapes(c.ShapeOf("X"), c.ShapeOf("Y"), c.Attr<int>("axis"));
  if (!shapes.ok()) return c.Error(shapes.status().message());
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Out"));
  return c.SetShape("Out", shapes->out);
}

// One value of Y for each channel of X.
bool MoveChannelAxis(const InferContext& plain, Op& op) {
  const int rank = plain.ShapeOf("X").rank();
  if (plain.ShapeOf("Y").rank() != 1 || plain.Attr<int>("axis") != 1) return false;
  op.Set("axis", AxisChannelsLast(1, rank));
  return true;
}

OpDef& DeclareElementwise(OpRegistry& ops, const std::string& type, std::string summary,
                          const std::string& formula, TypeRule types, SlotFlags x_kinds) {
  return ops.Add(type)
      .Doc(std::move(summary), formula + "\n" + kDoc)
      .Input("X", "left operand", std::move(types), x_kinds)
      .Input("Y", "right operand; its shape is aligned with X's by `axis`", SameTypeAs("X"))
      .Output("Out", "the result, in the broadcast shape", SameTypeAs("X"), x_kinds)
      .Attr("axis", -1,
            "the dimension of X with which the first dimension of Y is aligned; -1: the last dimensions are "
            "aligned",
            AtLeast(-1))
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("x_data_format", "", kNoEffect)
      .Attr("y_data_format", "", kNoEffect)
      .InferShape(InferElementwise)
      .Elementwise()
      .ChannelsLast({.images = {"X", "Out"}, .convert = MoveChannelAxis});
}

void RegisterElementwise(OpRegistry& ops) {
  OpDef& add = AddElementwise<Add>(ops, "elementwise_add", "The sum of X and Y.", "Out = X + Y");
  RegisterElementwiseAddCuda(add);
  OpDef& sub = AddElementwise<Sub>(ops, "elementwise_sub", "The difference of X and Y.", "Out = X - Y");
  OpDef& mul = AddElementwise<Mul>(ops, "elementwise_mul", "The elementwise product of X and Y.",
                                   "Out = X * Y. If X is selected rows, Y must have one element");
  OpDef& div = AddElementwise<Div>(ops, "elementwise_div", "The quotient of X and Y.",
                                   "Out = X / Y. For integers, the quotient is rounded towards zero, and a "
                                   "zero in Y is an error. If X is\nselected rows, Y must have one element");
  AddElementwiseSecondOrder(ops, add, sub, mul, div);
  AddElementwise<Max>(ops, "elementwise_max", "The larger of X and Y.",
                      "Out = max(X, Y); if they are equal, the gradient goes to Y");
  AddElementwise<Min>(ops, "elementwise_min", "The smaller of X and Y.",
                      "Out = min(X, Y); if they are equal, the gradient goes to Y");
  AddElementwise<Pow>(ops, "elementwise_pow", "X to the power of Y.",
                      "Out = X ^ Y; the gradient of Y needs X > 0");
  DeclareElementwise(
      ops, "elementwise_mod", "The remainder of the division of X by Y.",
      "Out = X - Y * floor(X / Y), which has the sign of Y. For integers, the quotient is rounded towards "
      "zero, as\nin Fluid, so that Out has the sign of X; a zero in Y is an error",
      Numbers())
      .Kernel<Cpu, Elementwise<Mod>::Forward, float, double, std::int32_t, std::int64_t>()
      .NoGrad();
  DeclareElementwise(ops, "elementwise_floordiv", "The integer quotient of X and Y.",
                     "Out = X / Y, rounded towards zero as in Fluid; a zero in Y is an error", Integers())
      .Kernel<Cpu, Elementwise<Div>::Forward, std::int32_t, std::int64_t>()
      .NoGrad();
}

}  // namespace penstock
