#include "framework/text/policies.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

using Kind = Compression::Kind;

constexpr Compression kTwoBit{.kind = Kind::kTwoBit, .threshold = 0.25f};
constexpr Compression kTopK{.kind = Kind::kTopK, .ratio = 0.1f};
constexpr Compression kFp16{.kind = Kind::kFp16};

TEST(CompressionRules, SelectTheMethodByNameThenBySize) {
  const auto rules = ParseCompression("two_bit 0.25 from 100, w: none, b: top_k 0.1");
  ASSERT_TRUE(rules.ok()) << rules.status().ToString();
  EXPECT_EQ(rules->Of("other", 100), kTwoBit);
  EXPECT_EQ(rules->Of("other", 99), Compression());
  EXPECT_EQ(rules->Of("w", 100000), Compression());
  EXPECT_EQ(rules->Of("b", 1), kTopK);
}

TEST(CompressionRules, RoundTripThroughText) {
  for (const char* text : {"", "fp16", "bf16 from 4096", "two_bit 0.5",
                           "top_k 0.01, \"a b\": none, w@GRAD: fp16", "from: fp16, none: bf16"}) {
    const auto rules = ParseCompression(text);
    ASSERT_TRUE(rules.ok()) << rules.status().ToString();
    EXPECT_EQ(rules->ToString(), text);
  }
  EXPECT_EQ(ParseCompression("two_bit, w: top_k")->ToString(),
            "two_bit 0.5, w: top_k 0.01");  // their defaults
  EXPECT_EQ(ParseCompression(" w :fp16 , two_bit 1 , ")->ToString(), "two_bit 1, w: fp16");
}

TEST(CompressionRules, InvalidRulesAreRefused) {
  const auto id = [](std::string_view text) { return ParseCompression(text).status().id(); };
  for (const char* text : {"zip", "two_bit 0.5 w: none", "fp16, bf16", "w: fp16, w: bf16", "fp16 from -1",
                           "w: fp16 from 3", "fp16 3", "w:", "from 3", "fp16 from 1.5", "w: \"", ","}) {
    EXPECT_EQ(id(text), "E-text-syntax") << text;
  }
  for (const char* text :
       {"two_bit 0", "two_bit -1.5", "two_bit 1e99", "top_k 0.0", "top_k 1.5", "top_k -0.1"}) {
    EXPECT_EQ(id(text), "E-compression-value") << text;
  }
}

TEST(Compression, MessageSizesOfEachMethod) {
  EXPECT_EQ(Compression().Bytes(1000), 4000);
  EXPECT_EQ(kFp16.Bytes(1000), 2000);
  EXPECT_EQ(Compression{.kind = Kind::kBf16}.Bytes(3), 6);
  EXPECT_EQ(kTwoBit.Bytes(1600), 400);
  EXPECT_EQ(kTwoBit.Bytes(1601), 404);
  EXPECT_EQ(kTopK.Bytes(1001), 8 * 101);
  EXPECT_EQ(kTopK.Bytes(1), 8);
  EXPECT_EQ(kTopK.Bytes(0), 0);
  EXPECT_EQ((Compression{.kind = Kind::kTopK, .ratio = 1}.Sent(7)), 7);
}

TEST(Compression, ComparesOnlyTheParameterOfItsKind) {
  EXPECT_EQ((Compression{.kind = Kind::kFp16, .threshold = 3}), kFp16);
  EXPECT_FALSE((Compression{.kind = Kind::kTwoBit, .threshold = 3}) == kTwoBit);
}

TEST(Policies, RoundTripThroughText) {
  JobPolicies policies{.staleness = 0, .backup_trainers = 2, .on_uneven = OnUneven::kPad, .compression = {}};
  policies.compression.by_name["w@GRAD.trainer_0"] = kTwoBit;
  ProgramMeta meta;
  meta.policies["bn_sync"] = "average";
  WritePolicies(policies, meta);
  EXPECT_EQ(meta.policies.at("staleness"), "0");
  EXPECT_EQ(meta.policies.at("backup_trainers"), "2");
  EXPECT_EQ(meta.policies.at("on_uneven"), "pad");
  EXPECT_EQ(meta.policies.at("compression"), "w@GRAD.trainer_0: two_bit 0.25");
  const auto read = ReadPolicies(meta);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(*read, policies);
  EXPECT_EQ(read->CompressionOf("w@GRAD.trainer_0"), kTwoBit);
  EXPECT_TRUE(read->CompressionOf("w@GRAD.trainer_1").none());

  WritePolicies({}, meta);
  EXPECT_EQ(meta.policies, (std::map<std::string, std::string>{{"bn_sync", "average"}}));
  EXPECT_EQ(*ReadPolicies(meta), JobPolicies());
}

TEST(Policies, InvalidPoliciesAreReported) {
  const auto error = [](const char* name, const char* value) {
    ProgramMeta meta;
    meta.policies[name] = value;
    return ReadPolicies(meta).status();
  };
  EXPECT_EQ(error("staleness", "-1").message(), "policy staleness must be an integer from 0 on, not \"-1\"");
  EXPECT_EQ(error("backup_trainers", "1x").id(), "E-policy-value");
  EXPECT_EQ(error("staleness", "").id(), "E-policy-value");
  EXPECT_EQ(error("staleness", "99999999999").id(), "E-policy-value");
  EXPECT_EQ(error("on_uneven", "wait").message(),
            "policy on_uneven must be join, pad or error, not \"wait\"");
  EXPECT_EQ(error("on_uneven", "").id(), "E-policy-value");
  EXPECT_EQ(error("compression", "fp16").id(), "E-policy-value");
  EXPECT_EQ(error("compression", "w: zip").id(), "E-text-syntax");
  EXPECT_EQ(error("compression", "w: top_k 2").id(), "E-compression-value");
}

}  // namespace
}  // namespace penstock
