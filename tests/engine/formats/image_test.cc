#include "engine/formats/samples/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/files.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::formats {
namespace {

using ::optfarm::testing::SourcePath;
using ::optfarm::testing::StatusIs;
using ::optfarm::testing::TestDataPath;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string AnyPng() {
  const std::string folder = SourcePath("examples/digits/images/3");
  return JoinPath(folder, ListFolder(folder)->front());
}

TEST(ImageTest, DecodesPngAsGreyAndAsRgb) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Image grey, LoadImage(AnyPng(), 1));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Image colour, LoadImage(AnyPng(), 3));
  ASSERT_EQ(colour.pixels.size(), grey.pixels.size() * 3);
  for (size_t i = 0; i < grey.pixels.size(); ++i) {
    for (size_t k = 0; k < 3; ++k) {
      ASSERT_EQ(colour.pixels[3 * i + k], grey.pixels[i]);
    }
  }
}

TEST(ImageTest, RefusesTruncatedPngAtEveryLength) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(AnyPng()));
  for (size_t length = 0; length + 12 < bytes.size(); ++length) {
    EXPECT_FALSE(DecodeImage(bytes.substr(0, length), 3).ok()) << length;
  }
}

TEST(ImageTest, RefusesHugePngBeforeTakingMemory) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(AnyPng()));
  // Width 2^30 in the header; its checksum no longer fits either.
  bytes[16] = '\x40';
  EXPECT_FALSE(DecodeImage(bytes, 3).ok());
}

TEST(ImageTest, RefusesOtherFiles) {
  EXPECT_THAT(DecodeImage("GIF89a", 3),
              StatusIs(kInvalid, HasSubstr("neither a JPEG nor a PNG")));
  EXPECT_THAT(DecodeImage("", 3), StatusIs(kInvalid, HasSubstr("empty")));
  EXPECT_THAT(DecodeImage("\xff\xd8\xff\xe0 rubbish", 3),
              StatusIs(kInvalid, HasSubstr("JPEG")));
  EXPECT_THAT(LoadImage("/nowhere/x.jpg", 3),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("x.jpg")));
}

TEST(ImageTest, DecodesJpegAndRefusesATruncatedOne) {
  OPTFARM_REQUIRE_TEST_DATA();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string bytes,
                               ReadFile(TestDataPath("misc/grace_hopper.jpg")));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Image image, DecodeImage(bytes, 3));
  EXPECT_EQ(image.pixels.size(),
            static_cast<size_t>(image.height) * image.width * 3);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Image grey, DecodeImage(bytes, 1));
  EXPECT_EQ(grey.pixels.size() * 3, image.pixels.size());
  EXPECT_THAT(DecodeImage(bytes.substr(0, bytes.size() / 2), 3),
              StatusIs(kInvalid, HasSubstr("not a whole JPEG")));
}

TEST(ImageTest, ResizesAsTensorFlowDoes) {
  const Image image{2, 2, 1, {0, 10, 20, 30}};
  // Position i * 2 / 4: 0, 0.5, 1, 1.5, clamped at the last pixel.
  EXPECT_THAT(ResizeBilinear(image, 4, 4).pixels,
              ElementsAre(0, 5, 10, 10, 10, 15, 20, 20, 20, 25, 30, 30, 20, 25,
                          30, 30));
  EXPECT_THAT(ResizeBilinear(image, 1, 1).pixels, ElementsAre(0));
  EXPECT_THAT(ResizeBilinear(image, 2, 2).pixels, ElementsAre(0, 10, 20, 30));
}

TEST(ImageTest, CropsTheCentre) {
  const Image image{
      4, 4, 1, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
  EXPECT_THAT(CropCentre(image, 0.5).pixels, ElementsAre(5, 6, 9, 10));
  EXPECT_EQ(CropCentre(image, 1.0).pixels, image.pixels);
  EXPECT_EQ(CropCentre(image, 0.01).pixels.size(), 1u);
}

}  // namespace
}  // namespace optfarm::formats
