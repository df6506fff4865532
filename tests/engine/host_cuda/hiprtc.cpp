// A stand-in for hipRTC (libhiprtc.so): it calls the stand-in's compiler, named by STAND_IN_HIPCC, for the host.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

enum { OK = 0, INVALID_INPUT = 3, COMPILATION = 6 };  // hiprtcResult
struct Program { std::string text, log, code; };

static std::string content(const std::string &path) {
    std::string all;
    if (FILE *file = fopen(path.c_str(), "rb")) {
        char part[65536];
        for (size_t got; (got = fread(part, 1, sizeof part, file)) > 0;) all.append(part, got);
        fclose(file);
    }
    return all;
}
static std::string quoted(const std::string &word) { return "'" + word + "'"; }  // no test has a quote in a word

extern "C" {

int hiprtcVersion(int *major, int *minor) { *major = 6; *minor = 2; return OK; }
const char *hiprtcGetErrorString(int code) { return code == COMPILATION ? "HIPRTC_ERROR_COMPILATION" : "an error of the stand-in"; }
int hiprtcCreateProgram(Program **made, const char *text, const char *, int, const char **, const char **) {
    *made = new Program{text, "", ""};
    return OK;
}
int hiprtcDestroyProgram(Program **program) { delete *program; return OK; }
int hiprtcCompileProgram(Program *program, int count, const char **options) {
    if (!count || strncmp(options[0], "--offload-arch=gfx", 18)) return INVALID_INPUT;
    char folder[] = "/tmp/hiprtc-XXXXXX";
    if (!mkdtemp(folder)) return INVALID_INPUT;
    const std::string at = folder, source = at + "/kernel.hip", image = at + "/image", log = at + "/log";
    FILE *file = fopen(source.c_str(), "wb");
    fwrite(program->text.data(), 1, program->text.size(), file);
    fclose(file);
    std::string command = getenv("STAND_IN_HIPCC");
    for (int i = 1; i < count; i++) command += " " + quoted(options[i]);
    const int failed = system((command + " -o " + image + " " + source + " > " + log + " 2>&1").c_str());
    program->log = content(log);
    program->code = content(image);
    for (const std::string &each : {source, image, log}) unlink(each.c_str());
    rmdir(folder);
    return failed ? COMPILATION : OK;
}
int hiprtcGetProgramLogSize(Program *program, size_t *size) { *size = program->log.size() + 1; return OK; }
int hiprtcGetProgramLog(Program *program, char *log) { strcpy(log, program->log.c_str()); return OK; }
int hiprtcGetCodeSize(Program *program, size_t *size) { *size = program->code.size(); return OK; }
int hiprtcGetCode(Program *program, char *code) { memcpy(code, program->code.data(), program->code.size()); return OK; }
}
