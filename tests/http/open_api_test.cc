#include "http/open_api.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "http/proto_comments.h"
#include "optfarm/v1/devices.pb.h"
#include "optfarm/v1/jobs.pb.h"
#include "optfarm/v1/models.pb.h"
#include "optfarm/v1/results.pb.h"
#include "optfarm/v1/store.pb.h"
#include "optfarm/v1/tokens.pb.h"

namespace optfarm::http {
namespace {

using ::nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

json Api() {
  std::vector<const google::protobuf::ServiceDescriptor*> services;
  for (const auto* file :
       {v1::Job::descriptor()->file(), v1::UploadRequest::descriptor()->file(),
        v1::Device::descriptor()->file(), v1::Result::descriptor()->file(),
        v1::Token::descriptor()->file(),
        v1::BackupRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      services.push_back(file->service(i));
    }
  }
  auto routes = RouteTable::Make(services);
  EXPECT_TRUE(routes.ok()) << routes.status();
  return json::parse(MakeOpenApi(*routes, "1.2.3"));
}

bool Said(const json& item) {
  return item.contains("description") &&
         !item["description"].get<std::string>().empty();
}

TEST(OpenApi, EveryOperationIsDescribedWithItsErrors) {
  const json api = Api();
  int operations = 0;
  for (const auto& [path, verbs] : api["paths"].items()) {
    for (const auto& [verb, operation] : verbs.items()) {
      SCOPED_TRACE(verb + " " + path);
      ++operations;
      EXPECT_TRUE(Said(operation));
      EXPECT_THAT(operation.value("summary", ""), Not(IsEmpty()));
      EXPECT_TRUE(operation["responses"].contains("401"));
      EXPECT_TRUE(operation["responses"].contains("403"));
      for (const auto& parameter : operation["parameters"]) {
        EXPECT_TRUE(Said(parameter)) << parameter;
      }
    }
  }
  EXPECT_GE(operations, 29);
}

TEST(OpenApi, EveryPropertyAndTagIsDescribed) {
  const json api = Api();
  int properties = 0;
  for (const auto& [name, schema] : api["components"]["schemas"].items()) {
    if (!schema.contains("properties")) continue;
    for (const auto& [field, property] : schema["properties"].items()) {
      ++properties;
      EXPECT_TRUE(Said(property)) << name << "." << field;
      EXPECT_FALSE(property.contains("$ref")) << name << "." << field;
    }
  }
  EXPECT_GE(properties, 500);
  for (const auto& tag : api["tags"]) EXPECT_TRUE(Said(tag)) << tag;
}

TEST(OpenApi, ErrorsComeFromTheMethodsComment) {
  const json api = Api();
  const json submit = api["paths"]["/v1/jobs"]["post"];
  EXPECT_EQ(submit["summary"], "Accepts a job");
  EXPECT_THAT(submit["description"].get<std::string>(),
              AllOf(StartsWith("Accepts a job. When the answer is OK"),
                    Not(HasSubstr("INVALID_ARGUMENT"))));
  EXPECT_THAT(submit["responses"]["400"]["description"].get<std::string>(),
              AllOf(HasSubstr("INVALID_ARGUMENT: the spec is malformed"),
                    HasSubstr("\nFAILED_PRECONDITION: blobs are missing")));
  EXPECT_THAT(submit["responses"]["429"]["description"].get<std::string>(),
              AllOf(HasSubstr("too many jobs are waiting"),
                    HasSubstr("the number of calls at once")));
  EXPECT_EQ(submit["responses"]["401"]["$ref"],
            "#/components/responses/Error401");
  EXPECT_THAT(api["components"]["responses"]["Error401"]["description"]
                  .get<std::string>(),
              StartsWith("UNAUTHENTICATED: "));
  const json upload = api["paths"]["/v1/blobs/{digest.sha256}"]["put"];
  EXPECT_THAT(upload["responses"]["400"]["description"].get<std::string>(),
              HasSubstr("DATA_LOSS: all bytes came"));
}

TEST(OpenApi, ValuesOfEnumsAreExplained) {
  const json state = Api()["components"]["schemas"]["Device.State"];
  EXPECT_THAT(state["description"].get<std::string>(),
              HasSubstr("- BUSY: It holds a benchmark task."));
}

// message M { // ... above. int32 a = 1; int32 b = 2; (blank) int32 c = 3; }
std::string DescriptorsOfThreeFields() {
  google::protobuf::FileDescriptorSet set;
  auto& file = *set.add_file();
  file.set_package("p");
  auto& type = *file.add_message_type();
  type.set_name("M");
  const int lines[] = {10, 11, 13};
  for (int i = 0; i < 3; ++i) {
    type.add_field()->set_name(std::string(1, static_cast<char>('a' + i)));
    auto& location = *file.mutable_source_code_info()->add_location();
    for (const int part : {4, 0, 2, i}) location.add_path(part);
    for (const int part : {lines[i], 2, 20}) location.add_span(part);
    if (i == 0) {
      location.set_leading_comments(
          " Wrapped\n over lines.\n   A  a list\n\n A paragraph.\n");
    }
  }
  return set.SerializeAsString();
}

TEST(ProtoComments, AFieldSharesTheCommentOfTheLineAbove) {
  const ProtoComments comments(DescriptorsOfThreeFields());
  EXPECT_EQ(comments.Of("p.M.a"),
            "Wrapped over lines.\n  A  a list\n\nA paragraph.");
  EXPECT_EQ(comments.Of("p.M.b"), comments.Of("p.M.a"));
  EXPECT_EQ(comments.Of("p.M.c"), "");
  EXPECT_EQ(comments.Of("p.M.d"), "");
}

TEST(ProtoComments, WhatCannotBeReadHasNone) {
  const ProtoComments comments("\xff\xff\xff");
  EXPECT_EQ(comments.Of("optfarm.v1.Job"), "");
}

}  // namespace
}  // namespace optfarm::http
