#include "operators/common/convert.h"

#include <cstddef>
#include <type_traits>

#include "framework/vector/half.h"
#include "operators/common/element_type.h"
#include "operators/common/parallel.h"

namespace penstock {
namespace {

template <typename From, typename To>
void Convert(const Tensor& x, Tensor& out) {
  const From* const from = x.Data<From>();
  To* const to = out.Data<To>();
  ForElements(x.count(), StreamNs<From>(1) + StreamNs<To>(1), [&](Dim begin, Dim end) {
    const auto count = static_cast<std::size_t>(end - begin);
    if constexpr (std::is_same_v<From, float> && std::is_same_v<To, Half>) {
      vec::HalvesOf(from + begin, to + begin, count);
    } else if constexpr (std::is_same_v<From, Half> && std::is_same_v<To, float>) {
      vec::FloatsOf(from + begin, to + begin, count);
    } else {
      for (Dim i = begin; i < end; ++i) to[i] = ConvertTo<To>(from[i]);
    }
  });
}

}  // namespace

Converter ConverterOf(DType from, DType to) {
  Converter converter = nullptr;
  VisitElementType(from, [&]<typename From>(std::type_identity<From>) {
    VisitElementType(to, [&]<typename To>(std::type_identity<To>) { converter = Convert<From, To>; });
  });
  return converter;
}

}  // namespace penstock
