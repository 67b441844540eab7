// Field numbers of framework.proto and extra.proto, shared by the code that reads and writes the plain form.
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
// The field of an attribute's value, by AttrKind.
inline constexpr int kValueField[] = {3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15};
inline constexpr std::size_t kAttrKinds = std::size(kValueField);

// Field numbers of extra.proto.
inline constexpr int kExtraBlocks = 1, kExtraPlan = 2, kExtraName = 3, kExtraSeed = 4, kExtraPolicies = 5,
                     kExtraJobFacts = 6, kExtraChunks = 7;
inline constexpr int kPolicyName = 1, kPolicyValue = 2;
inline constexpr int kChunkName = 1, kChunkRows = 2;
inline constexpr int kBlockFactsVars = 1, kBlockFactsOps = 2, kBlockFactsTypes = 3;
inline constexpr int kOpFactsIndex = 1, kOpFactsLocation = 2, kOpFactsMadeBy = 3;
inline constexpr int kFactsName = 1, kFactsParameter = 2, kFactsTrainable = 3, kFactsDistributed = 4,
                     kFactsRate = 5, kFactsStopGradient = 6, kFactsData = 7, kFactsSlice = 8;
inline constexpr int kSliceWhole = 1, kSliceShape = 2, kSliceBegin = 3, kSliceEnd = 4;

}  // namespace penstock::wire
