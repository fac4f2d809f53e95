// What is written fast is what protobuf writes.

#include "rpc/message_json.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "optfarm/v1/jobs.pb.h"
#include "optfarm/v1/results.pb.h"
#include "optfarm/v1/work.pb.h"
#include "tensorflow/core/framework/full_type.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tests/support/status_matchers.h"

namespace optfarm::rpc {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;
using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ByProtobuf(const Message& message, bool many_lines) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = many_lines;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  EXPECT_TRUE(
      google::protobuf::util::MessageToJsonString(message, &json, options)
          .ok());
  return json;
}

void ExpectAsProtobuf(const Message& message) {
  EXPECT_EQ(MessageToJson(message, JsonLines::kOne).value(),
            ByProtobuf(message, false));
  EXPECT_EQ(MessageToJson(message, JsonLines::kMany).value(),
            ByProtobuf(message, true));
}

bool HasDeprecatedFields(const Descriptor& type) {
  for (int i = 0; i < type.field_count(); ++i) {
    if (type.field(i)->options().deprecated()) return true;
  }
  return false;
}

// Fills messages with what is usual and with what is not; of deprecated fields,
// which protobuf writes when they are empty too, none is empty.
class Filler {
 public:
  void Fill(int depth, Message& message) {
    const Descriptor& type = *message.GetDescriptor();
    if (type.full_name() == "google.protobuf.Timestamp") {
      return FillTime(-62135596800, 253402300799, message);
    }
    if (type.full_name() == "google.protobuf.Duration") {
      return FillTime(0, 315576000000, message);
    }
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      if (field.options().deprecated()) {
        SetSome(field, message);
        continue;
      }
      if (field.is_map() || Below(3) == 0) continue;
      const int count = field.is_repeated() ? Below(4) : 1;
      for (int j = 0; j < count; ++j) Set(depth, field, message);
    }
  }

 private:
  int Below(int end) { return static_cast<int>(random_() % end); }
  // All bits occur.
  template <typename Number>
  Number Any() {
    const uint64_t bits = random_();
    Number number;
    std::memcpy(&number, &bits, sizeof(number));
    return Below(4) == 0 ? static_cast<Number>(Below(1000)) : number;
  }
  double AnyReal() {
    switch (Below(4)) {
      case 0:
        return Any<float>();
      case 1:
        return Below(100'000) / 1000.0;
      case 2:
        return std::vector<double>{
            0,   -0.0,     1e15,      1e16,  123456789012345680,
            NAN, INFINITY, -INFINITY, 5e-324}[static_cast<size_t>(Below(9))];
      default:
        return Any<double>();
    }
  }
  // Of subnormal floats protobuf writes more digits than they need.
  float AnyFloat() {
    const auto number = static_cast<float>(AnyReal());
    return std::fpclassify(number) == FP_SUBNORMAL ? 0 : number;
  }
  std::string AnyText() {
    const std::vector<std::string> texts = {"",
                                            "net.pb",
                                            "a \"b\" \\ /",
                                            "<&>",
                                            "two\nlines\t\r\b\f",
                                            std::string("\0\x01\x1f\x7f", 4),
                                            "r\xC3\xA9sum\xC3\xA9",
                                            "\xE2\x80\xA8 \xC2\xAD",
                                            "\xF0\x9F\x98\x80"};
    return texts[static_cast<size_t>(Below(static_cast<int>(texts.size())))];
  }

  void FillTime(int64_t least, int64_t most, Message& message) {
    const Descriptor& type = *message.GetDescriptor();
    const Reflection& reflection = *message.GetReflection();
    reflection.SetInt64(
        &message, type.FindFieldByName("seconds"),
        std::uniform_int_distribution<int64_t>(least, most)(random_));
    const int parts[] = {0, 1, 500'000'000, 123'000'000, 120'000, 999'999'999};
    reflection.SetInt32(&message, type.FindFieldByName("nanos"),
                        parts[Below(6)]);
  }

  void SetSome(const FieldDescriptor& field, Message& message) {
    const Reflection& reflection = *message.GetReflection();
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      reflection.SetDouble(&message, &field, 1 + Below(1000) / 8.0);
    } else if (field.is_repeated()) {
      reflection.AddMessage(&message, &field);
    } else {
      reflection.MutableMessage(&message, &field);
    }
  }

  void Set(int depth, const FieldDescriptor& field, Message& message) {
    const Reflection& reflection = *message.GetReflection();
    const bool repeated = field.is_repeated();
#define OPTFARM_SET(Type, value)                              \
  (repeated ? reflection.Add##Type(&message, &field, (value)) \
            : reflection.Set##Type(&message, &field, (value)))
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return OPTFARM_SET(Int32, Any<int32_t>());
      case FieldDescriptor::CPPTYPE_UINT32:
        return OPTFARM_SET(UInt32, Any<uint32_t>());
      case FieldDescriptor::CPPTYPE_INT64:
        return OPTFARM_SET(Int64, Any<int64_t>());
      case FieldDescriptor::CPPTYPE_UINT64:
        return OPTFARM_SET(UInt64, Any<uint64_t>());
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return OPTFARM_SET(Double, AnyReal());
      case FieldDescriptor::CPPTYPE_FLOAT:
        return OPTFARM_SET(Float, AnyFloat());
      case FieldDescriptor::CPPTYPE_BOOL:
        return OPTFARM_SET(Bool, Below(2) == 1);
      case FieldDescriptor::CPPTYPE_ENUM:
        return OPTFARM_SET(EnumValue, Below(5) == 0 ? 1000 : Below(3));
      case FieldDescriptor::CPPTYPE_STRING:
        return OPTFARM_SET(String, AnyText());
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (depth == 0) return;
        return Fill(depth - 1,
                    repeated ? *reflection.AddMessage(&message, &field)
                             : *reflection.MutableMessage(&message, &field));
    }
#undef OPTFARM_SET
  }

  std::mt19937_64 random_{1};
};

TEST(MessageJsonTest, MessagesAreWrittenAsProtobufWritesThem) {
  Filler filler;
  for (const Descriptor* any : {v1::Job::descriptor(), v1::Result::descriptor(),
                                v1::SynchronizeResponse::descriptor()}) {
    const google::protobuf::FileDescriptor& file = *any->file();
    for (int i = 0; i < file.message_type_count(); ++i) {
      const std::unique_ptr<Message> message(
          google::protobuf::MessageFactory::generated_factory()
              ->GetPrototype(file.message_type(i))
              ->New());
      SCOPED_TRACE(message->GetTypeName());
      if (!HasDeprecatedFields(*message->GetDescriptor())) {
        ExpectAsProtobuf(*message);
      }
      for (int j = 0; j < 5; ++j) {
        message->Clear();
        filler.Fill(4, *message);
        ExpectAsProtobuf(*message);
      }
    }
  }
}

TEST(MessageJsonTest, EmptyDeprecatedFieldsAreLeftOut) {
  v1::Dataset data;
  EXPECT_EQ(MessageToJson(data, JsonLines::kOne).value(),
            R"({"sources":[],"labels_offset":0})");
  const Reflection& reflection = *data.GetReflection();
  const Descriptor& type = *data.GetDescriptor();
  reflection.SetDouble(&data, type.FindFieldByName("input_mean"), 2);
  reflection.AddMessage(&data, type.FindFieldByName("files"));
  const std::string json = MessageToJson(data, JsonLines::kOne).value();
  EXPECT_THAT(json, HasSubstr(R"("input_mean":2)"));
  EXPECT_THAT(json, HasSubstr(R"("files":[{)"));
  EXPECT_THAT(json, Not(HasSubstr("input_std")));
}

TEST(MessageJsonTest, MapsAreWrittenToo) {
  tensorflow::SignatureDef signature;
  ExpectAsProtobuf(signature);
  (*signature.mutable_inputs())["x"].set_name("x:0");
  ExpectAsProtobuf(signature);
}

TEST(MessageJsonTest, MessagesAsDeepAsTheyGetAreWritten) {
  tensorflow::FullTypeDef value;
  tensorflow::FullTypeDef* inner = &value;
  for (int i = 0; i < 50; ++i) {
    ExpectAsProtobuf(value);
    inner = inner->add_args();
  }
}

TEST(MessageJsonTest, ATimeThatJsonCannotSayIsAnError) {
  v1::SeriesPoint point;
  point.mutable_create_time()->set_seconds(253402300800);
  EXPECT_THAT(MessageToJson(point, JsonLines::kOne).status(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("SeriesPoint")));
}

}  // namespace
}  // namespace optfarm::rpc
