// Numbers of framework.proto that both directions of the plain form (wire_plain.h) spell.
#pragma once

#include <cstddef>
#include <iterator>

namespace penstock::wire {

inline constexpr int kVarint = 0, kBytes = 2, kFixed32 = 5;  // wire types

// Field numbers of framework.proto.
inline constexpr int kOpInputs = 1, kOpOutputs = 2, kOpType = 3, kOpAttrs = 4, kOpTarget = 5;
inline constexpr int kSlotName = 1, kSlotArgs = 2;
inline constexpr int kAttrName = 1, kAttrType = 2;
inline constexpr int kVarName = 1, kVarType = 2, kVarPersistable = 3, kVarCheckFeed = 4;
inline constexpr int kTypeKind = 1, kTypeRows = 2, kTypeTensor = 3, kTypeArray = 4, kTypeReader = 5,
                     kTypeTuple = 7;
inline constexpr int kTensorType = 1, kTensorDims = 2;
inline constexpr int kLodTensor = 1, kLodLevel = 2, kReaderPart = 1, kTupleElement = 1;
// Of an attribute's value, by AttrKind.
inline constexpr int kValueField[] = {3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15};
inline constexpr std::size_t kAttrKinds = std::size(kValueField);

}  // namespace penstock::wire
