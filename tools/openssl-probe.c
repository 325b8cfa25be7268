/* Signs or verifies a given number of times with OpenSSL, to count instructions on all processors with an OpenSSL package
 * of Debian, also without a standard library of Rust.
 *
 *   openssl-probe make DIRECTORY                         generates a key and eight signatures of each algorithm
 *   openssl-probe run DIRECTORY NAME verify|sign COUNT   eight operations, then five rounds of COUNT of them
 *
 * crates/crypto/examples/probe.rs does the same with the code of nonesuch: same messages, same marks (sched_yield before
 * and after each round).
 */
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIGNATURES = 8, ROUNDS = 5, MESSAGE_OCTETS = 120, LONGEST = 1024 };

struct algorithm {
    const char *name, *type, *curve, *digest;
    unsigned int bits;
};

static const struct algorithm ALGORITHMS[] = {
    {"RSASHA256/1024", "RSA", NULL, "SHA256", 1024},
    {"RSASHA256/1280", "RSA", NULL, "SHA256", 1280},
    {"RSASHA256/2048", "RSA", NULL, "SHA256", 2048},
    {"RSASHA256/3072", "RSA", NULL, "SHA256", 3072},
    {"RSASHA256/4096", "RSA", NULL, "SHA256", 4096},
    {"ECDSAP256SHA256", "EC", "P-256", "SHA256", 0},
    {"ECDSAP384SHA384", "EC", "P-384", "SHA384", 0},
    {"ED25519", "ED25519", NULL, NULL, 0},
    {"ED448", "ED448", NULL, NULL, 0},
};
enum { ALGORITHM_COUNT = sizeof ALGORITHMS / sizeof *ALGORITHMS };

struct material {
    EVP_PKEY *key;
    const EVP_MD *digest;
    EVP_MD_CTX *context;
    unsigned char messages[SIGNATURES][MESSAGE_OCTETS];
    unsigned char signatures[SIGNATURES][LONGEST];
    size_t lengths[SIGNATURES];
};

static void fail(const char *what)
{
    fprintf(stderr, "openssl-probe: %s\n", what);
    exit(1);
}

static FILE *open_file(const char *directory, unsigned int row, const char *suffix, const char *mode)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%u.%s", directory, row, suffix);
    FILE *file = fopen(path, mode);
    if (!file)
        fail(path);
    return file;
}

static void sign(struct material *material, unsigned int number)
{
    size_t length = LONGEST;
    EVP_MD_CTX_reset(material->context);
    if (EVP_DigestSignInit(material->context, NULL, material->digest, NULL, material->key) != 1 ||
        EVP_DigestSign(material->context, material->signatures[number], &length, material->messages[number],
                       MESSAGE_OCTETS) != 1)
        fail("a signature could not be made");
    material->lengths[number] = length;
}

static void verify(struct material *material, unsigned int number)
{
    EVP_MD_CTX_reset(material->context);
    if (EVP_DigestVerifyInit(material->context, NULL, material->digest, NULL, material->key) != 1 ||
        EVP_DigestVerify(material->context, material->signatures[number], material->lengths[number],
                         material->messages[number], MESSAGE_OCTETS) != 1)
        fail("a signature does not verify");
}

static void prepare(struct material *material, const struct algorithm *algorithm)
{
    memset(material, 0, sizeof *material);
    material->digest = algorithm->digest ? EVP_get_digestbyname(algorithm->digest) : NULL;
    material->context = EVP_MD_CTX_new();
    for (unsigned int number = 0; number < SIGNATURES; number++)
        memset(material->messages[number], (int)number, MESSAGE_OCTETS);
}

static EVP_PKEY *generate(const struct algorithm *algorithm)
{
    if (algorithm->bits)
        return EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)algorithm->bits);
    if (algorithm->curve)
        return EVP_PKEY_Q_keygen(NULL, NULL, "EC", algorithm->curve);
    return EVP_PKEY_Q_keygen(NULL, NULL, algorithm->type);
}

static void make(const char *directory, unsigned int row)
{
    static struct material material;
    prepare(&material, &ALGORITHMS[row]);
    material.key = generate(&ALGORITHMS[row]);
    if (!material.key)
        fail("a key could not be made");
    FILE *pem = open_file(directory, row, "pem", "w");
    if (!PEM_write_PrivateKey(pem, material.key, NULL, NULL, 0, NULL, NULL) || fclose(pem) != 0)
        fail("a key could not be written");
    FILE *out = open_file(directory, row, "signatures", "w");
    for (unsigned int number = 0; number < SIGNATURES; number++) {
        sign(&material, number);
        unsigned char length[2] = {(unsigned char)(material.lengths[number] >> 8),
                                   (unsigned char)material.lengths[number]};
        if (fwrite(length, 1, 2, out) != 2 ||
            fwrite(material.signatures[number], 1, material.lengths[number], out) != material.lengths[number])
            fail("a signature could not be written");
    }
    if (fclose(out) != 0)
        fail("a signature could not be written");
}

static void load(struct material *material, const char *directory, unsigned int row)
{
    prepare(material, &ALGORITHMS[row]);
    FILE *pem = open_file(directory, row, "pem", "r");
    material->key = PEM_read_PrivateKey(pem, NULL, NULL, NULL);
    fclose(pem);
    if (!material->key)
        fail("a key could not be read");
    FILE *in = open_file(directory, row, "signatures", "r");
    for (unsigned int number = 0; number < SIGNATURES; number++) {
        unsigned char length[2];
        if (fread(length, 1, 2, in) != 2)
            fail("a signature is missing");
        material->lengths[number] = (size_t)length[0] << 8 | length[1];
        if (material->lengths[number] > LONGEST ||
            fread(material->signatures[number], 1, material->lengths[number], in) != material->lengths[number])
            fail("a signature is cut off");
    }
    fclose(in);
}

static void round_of(struct material *material, void (*operation)(struct material *, unsigned int), long count)
{
    for (long done = 0; done < count; done++)
        operation(material, (unsigned int)(done % SIGNATURES));
}

static void run(const char *directory, const char *name, const char *kind, long count)
{
    static struct material material;
    unsigned int row = 0;
    while (row < ALGORITHM_COUNT && strcmp(ALGORITHMS[row].name, name) != 0)
        row++;
    if (row == ALGORITHM_COUNT)
        fail("no such algorithm");
    load(&material, directory, row);
    void (*operation)(struct material *, unsigned int) = strcmp(kind, "sign") == 0 ? sign : verify;
    round_of(&material, operation, SIGNATURES);
    for (int round = 0; round < ROUNDS; round++) {
        sched_yield();
        round_of(&material, operation, count);
        sched_yield();
    }
}

int main(int count, char **arguments)
{
    if (count == 3 && strcmp(arguments[1], "make") == 0) {
        for (unsigned int row = 0; row < ALGORITHM_COUNT; row++)
            make(arguments[2], row);
        return 0;
    }
    if (count == 2 && strcmp(arguments[1], "list") == 0) {
        for (unsigned int row = 0; row < ALGORITHM_COUNT; row++)
            puts(ALGORITHMS[row].name);
        return 0;
    }
    if (count == 6 && strcmp(arguments[1], "run") == 0) {
        run(arguments[2], arguments[3], arguments[4], strtol(arguments[5], NULL, 10));
        return 0;
    }
    fputs("usage: openssl-probe make DIRECTORY | list | run DIRECTORY NAME verify|sign COUNT\n", stderr);
    return 2;
}
