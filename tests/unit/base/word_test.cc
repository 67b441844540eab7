#include "framework/base/word.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "framework/base/box.h"
#include "framework/base/strings.h"

namespace penstock {
namespace {

TEST(WordTest, HoldsItsText) {
  const Word word("op_role");
  EXPECT_EQ(word, "op_role");
  EXPECT_EQ("op_role", word);
  EXPECT_NE(word, std::string("op_role_var"));
  EXPECT_EQ(StrCat("[", word, "]"), "[op_role]");
  EXPECT_LT(Word("Grad"), Word("Param"));
  EXPECT_TRUE(Word().empty());
  EXPECT_EQ(Word(), "");
  EXPECT_EQ(Word(""), Word());
}

TEST(WordTest, EqualWordsShareInternedText) {
  EXPECT_EQ(&Word("ParamOut").str(), &Word(std::string("ParamOut")).str());
  const std::string longer(200, 'x');
  EXPECT_NE(&Word(longer).str(), &Word(longer).str());
  EXPECT_EQ(Word(longer), Word(longer));
  EXPECT_NE(Word(longer), Word(longer + "y"));
}

TEST(WordTest, UninternedWordsCompareEqual) {
  const Word rare = Word::Rare("mul");
  EXPECT_EQ(rare, Word("mul"));
  EXPECT_NE(&rare.str(), &Word("mul").str());
  Word copy = rare;
  EXPECT_EQ(&copy.str(), &rare.str());
  copy.clear();
  EXPECT_EQ(copy, "");
  EXPECT_EQ(rare, "mul");
  copy = rare;
  copy = Word(std::move(copy));
  EXPECT_EQ(copy, "mul");
}

// More words than are kept, from several threads at once: each still has its own text.
TEST(WordTest, IsThreadSafe) {
  constexpr int kThreads = 4, kWords = 20000;
  std::vector<std::vector<Word>> made(kThreads);
  {
    std::vector<std::jthread> threads;
    for (std::vector<Word>& words : made) {
      threads.emplace_back([&words] {
        for (int i = 0; i < kWords; ++i) words.emplace_back(StrCat("word_", i));
      });
    }
  }
  for (int i = 0; i < kWords; ++i) {
    for (const std::vector<Word>& words : made) {
      ASSERT_EQ(words[static_cast<std::size_t>(i)], StrCat("word_", i));
      ASSERT_EQ(words[static_cast<std::size_t>(i)], made[0][static_cast<std::size_t>(i)]);
    }
  }
}

TEST(BoxTest, OwnsAnOptionalValue) {
  Box<std::string> none;
  EXPECT_FALSE(none);
  EXPECT_EQ(sizeof(none), sizeof(void*));
  Box<std::string> some(std::string("text"));
  EXPECT_EQ(*some, "text");
  EXPECT_EQ(some->size(), 4u);
  EXPECT_NE(some, none);
  Box<std::string> copy = some;
  EXPECT_EQ(copy, some);
  *copy = "other";
  EXPECT_EQ(*some, "text");
  EXPECT_NE(copy, some);
  copy = none;
  EXPECT_FALSE(copy.has_value());
  EXPECT_EQ(copy, none);
  some.reset();
  EXPECT_EQ(some, none);
}

}  // namespace
}  // namespace penstock
