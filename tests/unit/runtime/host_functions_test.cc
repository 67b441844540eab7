#include "framework/runtime/host_functions.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(HostFunctions, AreFoundByTheirId) {
  const int before = HostFunctions::count();
  const auto twice = [](std::vector<Tensor> in) -> Result<std::vector<Tensor>> {
    in.push_back(in.front());
    return in;
  };
  const int number = HostFunctions::Add({"twice", twice});
  EXPECT_EQ(number, before);
  EXPECT_EQ(HostFunctions::count(), before + 1);
  const HostFunction* function = HostFunctions::Find(number);
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(function->name, "twice");
  const auto made = function->call({Tensor(DType::kFp32, {1})});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->size(), 2u);
  // Later additions do not move it.
  for (int i = 0; i < 100; ++i) HostFunctions::Add({"other", twice});
  EXPECT_EQ(HostFunctions::Find(number), function);
}

TEST(HostFunctions, UnknownIdsAreNotFound) {
  EXPECT_EQ(HostFunctions::Find(-1), nullptr);
  EXPECT_EQ(HostFunctions::Find(HostFunctions::count()), nullptr);
}

}  // namespace
}  // namespace penstock
