#include "engine/formats/samples/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::formats {
namespace {

using ::optfarm::testing::StatusIs;
using tensorflow::TensorProto;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string Npy(const std::string& dict, const std::string& data,
                int version = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  file += static_cast<char>(dict.size() & 0xff);
  file += static_cast<char>(dict.size() >> 8);
  if (version > 1) file += std::string(2, '\0');
  return file + dict + data;
}

std::string Dict(const std::string& descr, const std::string& shape,
                 const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran +
         ", 'shape': " + shape + ", }   \n";
}

template <typename T>
std::vector<T> Values(const TensorProto& tensor) {
  std::vector<T> values(tensor.tensor_content().size() / sizeof(T));
  std::memcpy(values.data(), tensor.tensor_content().data(),
              tensor.tensor_content().size());
  return values;
}

TEST(NpyTest, ReadsAllVersions) {
  for (const int version : {1, 2, 3}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const TensorProto tensor,
        ParseNpy(Npy(Dict("|u1", "(2, 3)"), "abcdef", version), "x"));
    EXPECT_EQ(tensor.dtype(), tensorflow::DT_UINT8);
    EXPECT_EQ(tensor.tensor_shape().dim_size(), 2);
    EXPECT_EQ(tensor.tensor_content(), "abcdef");
  }
}

TEST(NpyTest, PutsFortranOrderIntoCOrder) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const TensorProto tensor,
      ParseNpy(Npy(Dict("|i1", "(2, 3)", "True"), "\1\4\2\5\3\6"), "x"));
  EXPECT_THAT(Values<int8_t>(tensor), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(NpyTest, SwapsBigEndianAndCleansBools) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      TensorProto tensor,
      ParseNpy(Npy(Dict(">i2", "(2,)"), std::string("\0\1\2\0", 4)), "x"));
  EXPECT_THAT(Values<int16_t>(tensor), ElementsAre(1, 512));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      tensor, ParseNpy(Npy(Dict("|b1", "(2,)"), std::string("\0\7", 2)), "x"));
  EXPECT_THAT(Values<uint8_t>(tensor), ElementsAre(0, 1));
}

TEST(NpyTest, ReadsScalarsAndStrings) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      TensorProto tensor,
      ParseNpy(Npy(Dict("<f4", "()"), std::string("\0\0\x80\x3f", 4)), "x"));
  EXPECT_EQ(tensor.tensor_shape().dim_size(), 0);
  EXPECT_THAT(Values<float>(tensor), ElementsAre(1.0f));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      tensor,
      ParseNpy(Npy(Dict("|S3", "(2,)"), std::string("ab\0xyz", 6)), "x"));
  EXPECT_THAT(tensor.string_val(), ElementsAre("ab", "xyz"));
}

TEST(NpyTest, ChecksSizesBeforeTakingMemory) {
  EXPECT_THAT(ParseNpy(Npy(Dict("<f4", "(1099511627776,)"), "0123456789"), "x"),
              StatusIs(kInvalid, HasSubstr("truncated")));
  EXPECT_THAT(
      ParseNpy(
          Npy(Dict("<f8", "(4611686018427387904, 4611686018427387904)"), ""),
          "x"),
      StatusIs(kInvalid, HasSubstr("more bytes than can be counted")));
  EXPECT_THAT(ParseNpy(Npy(Dict("<f4", "(1,)"), "12345"), "x"),
              StatusIs(kInvalid, HasSubstr("needs 4 bytes")));
  EXPECT_THAT(ParseNpy(Npy(Dict("|S0", "(9223372036854775807,)"), ""), "x"),
              StatusIs(kInvalid, HasSubstr("without bytes")));
}

TEST(NpyTest, RefusesWhatItCannotRead) {
  const std::string cut = "\x93NUMPY\x01";
  EXPECT_THAT(ParseNpy("PK", "'a.npz'"),
              StatusIs(kInvalid, HasSubstr("'a.npz'")));
  EXPECT_THAT(ParseNpy(cut, "x"), StatusIs(kInvalid, HasSubstr("not a .npy")));
  EXPECT_THAT(ParseNpy(Npy("{'descr': '<f4'", ""), "x"),
              StatusIs(kInvalid, HasSubstr("malformed")));
  EXPECT_THAT(ParseNpy(Npy(Dict("<f4", "(-1,)"), ""), "x"),
              StatusIs(kInvalid, HasSubstr("malformed")));
  EXPECT_THAT(ParseNpy(Npy(Dict("|O", "(1,)"), "1"), "x"),
              StatusIs(kInvalid, HasSubstr("'|O'")));
  EXPECT_THAT(ParseNpy(Npy(Dict("<U4", "(1,)"), "1"), "x"),
              StatusIs(kInvalid, HasSubstr("astype")));
  EXPECT_THAT(ParseNpy(Npy("{'descr': [('a', '<f4')], 'fortran_order': False, "
                           "'shape': ()}",
                           ""),
                       "x"),
              StatusIs(kInvalid, HasSubstr("structures")));
}

TEST(NpyTest, WritesWhatItReads) {
  TensorProto tensor;
  tensor.set_dtype(tensorflow::DT_INT32);
  tensor.mutable_tensor_shape()->add_dim()->set_size(3);
  for (const int value : {7, -8, 9}) tensor.add_int_val(value);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string file, SerializeNpy(tensor));
  EXPECT_EQ(file.find('\n') % 64, 63u);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const TensorProto read, ParseNpy(file, "x"));
  EXPECT_THAT(Values<int32_t>(read), ElementsAre(7, -8, 9));

  TensorProto text;
  text.set_dtype(tensorflow::DT_STRING);
  text.mutable_tensor_shape();
  text.add_string_val("hello");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string strings, SerializeNpy(text));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const TensorProto again, ParseNpy(strings, "x"));
  EXPECT_THAT(again.string_val(), ElementsAre("hello"));
}

TEST(NpyTest, RefusesToWriteHugeClaims) {
  TensorProto tensor;
  tensor.set_dtype(tensorflow::DT_FLOAT);
  tensor.mutable_tensor_shape()->add_dim()->set_size(int64_t{1} << 40);
  tensor.set_tensor_content("0123456789");
  EXPECT_FALSE(SerializeNpy(tensor).ok());
  tensor.clear_tensor_content();
  tensor.mutable_tensor_shape()->mutable_dim(0)->set_size(8);
  tensor.add_float_val(1);
  EXPECT_THAT(SerializeNpy(tensor), StatusIs(kInvalid, HasSubstr("1 values")));
}

TEST(NpyTest, ReadsSharedArrays) {
  OPTFARM_REQUIRE_TEST_DATA();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const TensorProto tensor,
      LoadNpy(testing::TestDataPath("golden/cifar/in.Input.npy")));
  EXPECT_EQ(tensor.tensor_shape().dim(0).size(), 8);
  EXPECT_EQ(tensor.tensor_content().size(), 8u * 32 * 32 * 3 * 4);
}

}  // namespace
}  // namespace optfarm::formats
