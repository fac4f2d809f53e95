#include "engine/pictures/decoders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <string>
#include <vector>

#include "base/files.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::pictures {
namespace {

using ::optfarm::testing::SourcePath;
using ::optfarm::testing::StatusIs;
using ::optfarm::testing::TestDataPath;
using ::testing::HasSubstr;

std::string AnyPng() {
  const std::string folder = SourcePath("examples/digits/images/3");
  return *ReadFile(JoinPath(folder, ListFolder(folder)->front()));
}

// Pixels and their layout.
struct Taken {
  Layout layout;
  std::vector<uint8_t> pixels;
  int times = 0;

  uint8_t* operator()(const Layout& asked) {
    layout = asked;
    pixels.resize(asked.size());
    ++times;
    return pixels.data();
  }
};

uint8_t* NoMemory(const Layout&) { return nullptr; }
uint8_t* Throws(const Layout&) { throw std::bad_alloc(); }

TEST(DecodePngTest, WidensSamplesToSixteenBits) {
  Taken narrow, wide;
  OPTFARM_ASSERT_OK(DecodePng(AnyPng(), {1, 8}, std::ref(narrow)));
  OPTFARM_ASSERT_OK(DecodePng(AnyPng(), {1, 16}, std::ref(wide)));
  EXPECT_EQ(narrow.times, 1);
  ASSERT_EQ(wide.pixels.size(), 2 * narrow.pixels.size());
  const auto* samples = reinterpret_cast<const uint16_t*>(wide.pixels.data());
  for (size_t i = 0; i < narrow.pixels.size(); ++i) {
    ASSERT_EQ(samples[i], narrow.pixels[i] * 257) << i;
  }
}

TEST(DecodePngTest, AddsAnOpaqueChannelWhereOneIsAskedFor) {
  Taken grey, with_alpha;
  OPTFARM_ASSERT_OK(DecodePng(AnyPng(), {1, 8}, std::ref(grey)));
  OPTFARM_ASSERT_OK(DecodePng(AnyPng(), {2, 8}, std::ref(with_alpha)));
  for (size_t i = 0; i < grey.pixels.size(); ++i) {
    ASSERT_EQ(with_alpha.pixels[2 * i], grey.pixels[i]);
    ASSERT_EQ(with_alpha.pixels[2 * i + 1], 255);
  }
}

TEST(DecodersTest, SayThatThereIsNoMemory) {
  constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;
  EXPECT_THAT(DecodePng(AnyPng(), {}, NoMemory),
              StatusIs(kExhausted, HasSubstr("no memory")));
  // The owner of the memory may throw; nothing is leaked then.
  EXPECT_THROW((void)DecodePng(AnyPng(), {}, Throws), std::bad_alloc);
  OPTFARM_REQUIRE_TEST_DATA();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string jpeg,
                               ReadFile(TestDataPath("misc/grace_hopper.jpg")));
  EXPECT_THAT(DecodeJpeg(jpeg, {}, NoMemory),
              StatusIs(kExhausted, HasSubstr("no memory")));
  EXPECT_THROW((void)DecodeJpeg(jpeg, {}, Throws), std::bad_alloc);
}

TEST(DecodersTest, RefuseHugePicturesBeforeMemoryIsTaken) {
  OPTFARM_ASSERT_OK(CheckSize(1 << 13, 1 << 13));
  OPTFARM_ASSERT_OK(CheckSize(0, 1 << 30));
  EXPECT_FALSE(CheckSize((1 << 13) + 1, 1 << 13).ok());
  EXPECT_FALSE(CheckSize(int64_t{1} << 62, int64_t{1} << 62).ok());
  EXPECT_FALSE(CheckSize(-1, 1).ok());
  OPTFARM_REQUIRE_TEST_DATA();
  OPTFARM_ASSERT_OK_AND_ASSIGN(std::string jpeg,
                               ReadFile(TestDataPath("misc/grace_hopper.jpg")));
  // The frame's header says 65500 x 65500.
  const size_t frame = jpeg.find(std::string("\xff\xc0\x00\x11", 4));
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  Taken taken;
  EXPECT_THAT(DecodeJpeg(jpeg, {}, std::ref(taken)),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("65500 x 65500 pixels")));
  EXPECT_EQ(taken.times, 0);
}

TEST(DecodeJpegTest, ShrinksWhileItDecodes) {
  OPTFARM_REQUIRE_TEST_DATA();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string jpeg,
                               ReadFile(TestDataPath("misc/grace_hopper.jpg")));
  Taken whole, small;
  OPTFARM_ASSERT_OK(DecodeJpeg(jpeg, {}, std::ref(whole)));
  JpegOptions options;
  options.ratio = 4;
  OPTFARM_ASSERT_OK(DecodeJpeg(jpeg, options, std::ref(small)));
  EXPECT_EQ(small.layout.height, (whole.layout.height + 3) / 4);
  EXPECT_EQ(small.layout.width, (whole.layout.width + 3) / 4);
}

}  // namespace
}  // namespace optfarm::pictures
