#include "engine/formats/tensorflow/tensor_slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "engine/formats/tensorflow/ordered_code.h"
#include "tests/support/status_matchers.h"

namespace optfarm::formats {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string OrderedInt(int64_t value) {
  std::string bytes;
  AppendOrderedInt(value, &bytes);
  return bytes;
}

std::vector<int64_t> InterestingIntegers() {
  std::vector<int64_t> values = {0};
  for (int bit = 0; bit < 63; ++bit) {
    const int64_t power = int64_t{1} << bit;
    for (const int64_t value : {power - 1, power, power + 1}) {
      values.push_back(value);
      values.push_back(-value);
    }
  }
  values.push_back(std::numeric_limits<int64_t>::max());
  values.push_back(std::numeric_limits<int64_t>::min());
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

TEST(OrderedCodeTest, HasTheDocumentedBytes) {
  EXPECT_EQ(OrderedInt(0), "\x80");
  EXPECT_EQ(OrderedInt(-1), "\x7f");
  EXPECT_EQ(OrderedInt(63), "\xbf");
  EXPECT_EQ(OrderedInt(-64), "\x40");
  EXPECT_EQ(OrderedInt(64), "\xc0\x40");
  EXPECT_EQ(OrderedInt(-65), "\x3f\xbf");
  std::string bytes;
  AppendOrderedUint(0, &bytes);
  AppendOrderedUint(258, &bytes);
  EXPECT_EQ(bytes, std::string("\0\2\1\2", 4));
  bytes.clear();
  AppendOrderedString(std::string("a\0\xff", 3), &bytes);
  EXPECT_EQ(bytes, std::string("a\0\xff\xff\0\0\1", 7));
}

TEST(OrderedCodeTest, IntegersComeBackAndKeepTheirOrder) {
  std::string previous;
  for (const int64_t value : InterestingIntegers()) {
    const std::string bytes = OrderedInt(value);
    EXPECT_LT(previous, bytes) << value;
    previous = bytes;
    const std::string longer = bytes + "rest";
    absl::string_view rest = longer;
    int64_t read = 0;
    ASSERT_TRUE(TakeOrderedInt(&rest, &read)) << value;
    EXPECT_EQ(read, value);
    EXPECT_EQ(rest, "rest");
    for (size_t size = 0; size < bytes.size(); ++size) {
      absl::string_view cut = absl::string_view(bytes).substr(0, size);
      EXPECT_FALSE(TakeOrderedInt(&cut, &read)) << value;
    }
  }
}

TEST(OrderedCodeTest, RefusesWhatItWouldNotWrite) {
  uint64_t number = 0;
  int64_t integer = 0;
  std::string text;
  absl::string_view zero_first("\2\0\1", 3), too_long(
                                                 "\x09"
                                                 "123456789");
  EXPECT_FALSE(TakeOrderedUint(&zero_first, &number));
  EXPECT_FALSE(TakeOrderedUint(&too_long, &number));
  // 1 in two bytes.
  absl::string_view wide("\xc0\x01");
  EXPECT_FALSE(TakeOrderedInt(&wide, &integer));
  for (const std::string& bad :
       {std::string("ab"), std::string("a\0", 2), std::string("a\0\2", 3),
        std::string("a\xff\xff", 3), std::string("a\xff")}) {
    absl::string_view bytes = bad;
    EXPECT_FALSE(TakeOrderedString(&bytes, &text));
  }
}

TEST(TensorSliceTest, KeysComeBack) {
  tensorflow::TensorSliceProto slice;
  slice.add_extent();
  slice.add_extent()->set_length(1000);
  slice.mutable_extent(1)->set_start(70);
  const std::string name("part\0of\xff", 8);
  const std::string key = EncodeSliceKey(name, slice);
  std::string read_name;
  tensorflow::TensorSliceProto read;
  ASSERT_TRUE(ParseSliceKey(key, &read_name, &read));
  EXPECT_EQ(read_name, name);
  EXPECT_EQ(read.SerializeAsString(), slice.SerializeAsString());
  for (size_t size = 0; size < key.size(); ++size) {
    EXPECT_FALSE(ParseSliceKey(key.substr(0, size), &read_name, &read));
  }
  EXPECT_FALSE(ParseSliceKey(key + "x", &read_name, &read));
}

TEST(TensorSliceTest, ParsesShapesAndSlices) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto part,
                               ParseShapeAndSlice("4 6 1,2:-"));
  ASSERT_TRUE(part.has_value());
  EXPECT_THAT(part->shape, ElementsAre(4, 6));
  EXPECT_EQ(part->slice.ToString(), "1,2:0,6");
  EXPECT_THAT(part->slice.Shape(), ElementsAre(2, 6));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto whole, ParseShapeAndSlice(""));
  EXPECT_FALSE(whole.has_value());
}

TEST(TensorSliceTest, RefusesMalformedShapesAndSlices) {
  for (const char* text :
       {"4 6 -", "4 x -:-", "-4 -", "4 3,2", "4 -1,2", "4 1", "4 1,2,3",
        "4 0,0", "9999999999 9999999999 -:-", "4 9223372036854775807,2"}) {
    EXPECT_THAT(ParseShapeAndSlice(text),
                StatusIs(kInvalid, HasSubstr("shape and slice")))
        << text;
  }
}

TEST(TensorSliceTest, ResolvesWholeAxes) {
  tensorflow::TensorSliceProto slice;
  slice.add_extent();
  slice.add_extent()->set_length(-1);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const TensorSlice resolved,
                               ResolveSlice(slice, {3, 5}));
  EXPECT_EQ(resolved, WholeTensor({3, 5}));
  EXPECT_THAT(ResolveSlice(slice, {3}), StatusIs(kInvalid, HasSubstr("rank")));
  slice.mutable_extent(0)->set_start(1);
  EXPECT_THAT(ResolveSlice(slice, {3, 5}),
              StatusIs(kInvalid, HasSubstr("not in axis 0")));
}

TEST(TensorSliceTest, VolumeSurvivesHugeAxesBesideAnEmptyOne) {
  const int64_t huge = int64_t{1} << 62;
  EXPECT_EQ(WholeTensor({huge, 16, 0}).Volume(), 0);
}

// Copies through the runs and element by element.
TEST(TensorSliceTest, SharedRunsCoverWhatTwoBoxesShare) {
  const std::vector<std::vector<std::pair<int64_t, int64_t>>> kBoxes = {
      {{0, 3}, {0, 4}, {0, 2}}, {{1, 2}, {1, 2}, {0, 2}},
      {{0, 2}, {0, 4}, {1, 1}}, {{2, 1}, {3, 1}, {0, 1}},
      {{0, 1}, {0, 4}, {0, 2}}, {{1, 1}, {2, 2}, {0, 2}},
  };
  const auto to_slice = [](const auto& box) {
    TensorSlice slice;
    for (const auto& [start, length] : box) {
      slice.extents.push_back({start, length});
    }
    return slice;
  };
  // Position in the whole tensor of each element of a box.
  const auto positions = [](const TensorSlice& slice) {
    std::vector<int64_t> all;
    const auto& e = slice.extents;
    for (int64_t i = 0; i < e[0].length; ++i)
      for (int64_t j = 0; j < e[1].length; ++j)
        for (int64_t k = 0; k < e[2].length; ++k)
          all.push_back(((e[0].start + i) * 4 + e[1].start + j) * 2 +
                        e[2].start + k);
    return all;
  };
  for (const auto& box_a : kBoxes) {
    for (const auto& box_b : kBoxes) {
      const TensorSlice a = to_slice(box_a), b = to_slice(box_b);
      const auto at_a = positions(a), at_b = positions(b);
      std::vector<int64_t> shared, expected;
      ForEachSharedRun(a, b, [&](int64_t in_a, int64_t in_b, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
          EXPECT_EQ(at_a[in_a + i], at_b[in_b + i]);
          shared.push_back(at_a[in_a + i]);
        }
      });
      std::set_intersection(at_a.begin(), at_a.end(), at_b.begin(), at_b.end(),
                            std::back_inserter(expected));
      EXPECT_EQ(shared, expected);
      EXPECT_EQ(Overlap(a, b), !expected.empty());
    }
  }
}

TEST(TensorSliceTest, ScalarsShareTheirOneElement) {
  int runs = 0;
  ForEachSharedRun(TensorSlice(), TensorSlice(),
                   [&](int64_t, int64_t, int64_t count) { runs += count; });
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace optfarm::formats
