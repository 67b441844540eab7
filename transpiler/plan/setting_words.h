// The words of the enumerations that are settings.
//
//   Words<Clip>::kNameOf(Clip::kGlobal)       "global"
//   Words<Clip>::kFromName("global")          Clip::kGlobal; nullopt for another word
#pragma once

#include "transpiler/plan/config.h"

namespace penstock::plan {

template <typename E>
struct Words;

template <>
struct Words<Slicing> {
  static constexpr auto kNameOf = SlicingName;
  static constexpr auto kFromName = SlicingFromName;
};
template <>
struct Words<Placement> {
  static constexpr auto kNameOf = PlacementName;
  static constexpr auto kFromName = PlacementFromName;
};
template <>
struct Words<Clip> {
  static constexpr auto kNameOf = ClipName;
  static constexpr auto kFromName = ClipFromName;
};
template <>
struct Words<BnSync> {
  static constexpr auto kNameOf = BnSyncName;
  static constexpr auto kFromName = BnSyncFromName;
};
template <>
struct Words<OnUneven> {
  static constexpr auto kNameOf = OnUnevenName;
  static constexpr auto kFromName = OnUnevenFromName;
};
template <>
struct Words<DenseExchange> {
  static constexpr auto kNameOf = DenseExchangeName;
  static constexpr auto kFromName = DenseExchangeFromName;
};

}  // namespace penstock::plan
